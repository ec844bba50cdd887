"""A small schema that breaks no rule, to break one at a time."""

BASE = """\
schema = 1

[types]
X = ["bfloat16", "float16", "float32"]

[[operator]]
number = 1
name = "packed"
title = "Packed"
family = "Some"
summary = "Does it."
equation = "y = x"
source = "nowhere"
aligned = "nothing"
tensors = [
  { name = "x", role = "in", shape = ["T", "C"], dtype = "X", doc = "what to read" },
  { name = "extra", role = "in", shape = ["C"], dtype = "X", optional = true, doc = "what to add" },
  { name = "more", role = "in", shape = ["C"], dtype = "X", optional = true, doc = "what else to add" },
  { name = "pool", role = "inout", shape = ["S", "C", "KC-1"], dtype = "X", strides = "matrix", doc = "what to change" },
  { name = "taps", role = "in", shape = ["KC"], dtype = "float32", doc = "filter" },
  { name = "cu_seqlens", role = "in", shape = ["N+1"], dtype = "int32", values = "cu_seqlens", doc = "where" },
  { name = "slots", role = "in", shape = ["N"], dtype = "int32", values = "initial_slots", pools = ["S"], doc = "which" },
  { name = "y", role = "out", shape = ["T", "C"], dtype = "X", fill = 0, doc = "what to write" },
]
attributes = [
  { name = "mode", type = "enum", choices = ["slow", "fast"], default = "slow", doc = "how" },
  { name = "scale", type = "float", default = "C ** -0.5", min = 0, max = 8, doc = "how much" },
  { name = "share", type = "float", default = "none", above = 0, doc = "which part" },
  { name = "flag", type = "bool", default = false, doc = "whether" },
]
require = ["KC >= 1"]
together = [["extra", "more"]]
workspace = true

[[operator]] # the second
number = 7
name = "chosen"
title = "Chosen"
family = "Other"
summary = "Picks some."
equation = "ids = best"
source = "nowhere"
aligned = "nothing"
tensors = [
  { name = "logits", role = "in", shape = ["T", "E"], dtype = "X", doc = "what to rank" },
  { name = "halves", role = "in", shape = ["2*I", "I"], dtype = "float32", optional = true, doc = "two to one" },
  { name = "ids", role = "out", shape = ["T", "k"], dtype = "int32", fill = -1, doc = "the best" },
  { name = "count", role = "out", shape = ["1"], dtype = "int32", doc = "how many" },
]
attributes = [
  { name = "k", type = "int", min = 1, doc = "how many to pick" },
  { name = "mode", type = "enum", choices = ["slow", "fast"], default = "fast", doc = "how" },
]
require = ["k <= E"]
derived = { half = "E // 2" }

[[operator]]
number = 9
name = "moved"
title = "Moved"
family = "Other"
summary = "Moves it."
equation = "dst = src"
source = "nowhere"
aligned = "nothing"
tensors = [
  { name = "src", role = "in", shape = ["..."], dtype = "element", strides = "any", doc = "what to read" },
  { name = "dst", role = "out", shape = ["..."], dtype = "element", strides = "any", doc = "what to write" },
]
functional = false
"""


def line_of(text, marker):
    """The one line of `text` that holds `marker`, counted from 1."""
    found = [number for number, line in enumerate(text.splitlines(), 1) if marker in line]
    assert len(found) == 1, f"{marker!r} stands on lines {found}"
    return found[0]


def changed(old, new):
    assert BASE.count(old) == 1, f"{old!r} occurs {BASE.count(old)} times"
    return BASE.replace(old, new)
