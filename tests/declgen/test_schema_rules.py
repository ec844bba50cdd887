"""Each rule of the schema, broken once: refused with the file, the exact line and words that say what is wrong."""

import re

import pytest

from .generator import model
from .texts import BASE, changed, line_of

pytestmark = pytest.mark.smoke

X = '{ name = "x", role = "in", shape = ["T", "C"], dtype = "X", doc = "what to read" }'
Y = '{ name = "y", role = "out", shape = ["T", "C"], dtype = "X", fill = 0, doc = "what to write" }'
SLOTS = '{ name = "slots", role = "in", shape = ["N"], dtype = "int32", values = "initial_slots", pools = ["S"]'
SCALE = '{ name = "scale", type = "float", default = "C ** -0.5", min = 0, max = 8, doc = "how much" }'
K = '{ name = "k", type = "int", min = 1, doc = "how many to pick" }'
MODE = 'choices = ["slow", "fast"], default = "slow"'
TAPS = '{ name = "taps", role = "in", shape = ["KC"], dtype = "float32", doc = "filter" }'
COUNT = '{ name = "count", role = "out", shape = ["1"], dtype = "int32", doc = "how many" }'

FIRST = line_of(BASE, X) - 1  # where the first operator's tensors begin


# name of the rule: what to replace, by what, what the reported line holds, what the message says
RULES = {
    # keys
    "unknown top-level key": (
        "schema = 1",
        "schema = 1\ncolour = 2",
        "colour = 2",
        "unknown key `colour` in the schema",
    ),
    "unknown operator key": ("workspace = true", "worksapce = true", "worksapce", "unknown key `worksapce`.*workspace"),
    "unknown tensor key": (X, X.replace("}", ", dim = 2 }"), 'name = "x"', "unknown key `dim` in tensor `x`"),
    "unknown attribute key": (
        SCALE,
        SCALE.replace("min", "least"),
        "least",
        "unknown key `least` in attribute `scale`",
    ),
    "unknown key in the second operator": (
        'require = ["k <= E"]',
        "requires = []",
        "requires",
        "unknown key `requires`",
    ),
    "missing operator key": (
        'equation = "y = x"\n',
        "",
        'name = "packed"',
        "operator `packed` lacks the key `equation`",
    ),
    "missing tensor key": (X, X.replace(', doc = "what to read"', ""), 'name = "x"', "tensor `x` lacks the key `doc`"),
    "missing attribute key": (SCALE, SCALE.replace('type = "float", ', ""), '"scale"', "`scale` lacks the key `type`"),
    "schema version": ("schema = 1", "schema = 2", "schema = 2", "schema version must be 1, not 2"),
    # types of values
    "number is text": (
        "number = 7",
        'number = "7"',
        'number = "7"',
        "`number` of operator `chosen` must be int, not '7'",
    ),
    "number is a bool": ("number = 7", "number = true", "number = true", "`number`.* must be int"),
    "number below one": ("number = 7", "number = 0", "number = 0", "number must be at least 1, not 0"),
    "name is a number": ('name = "chosen"', "name = 3", "name = 3", "`name`.* must be str, not 3"),
    "workspace is text": ("workspace = true", 'workspace = "yes"', 'workspace = "yes"', "`workspace`.* must be bool"),
    "functional is a number": ("functional = false", "functional = 0", "functional = 0", "`functional`.* must be bool"),
    "tensors is a table": (
        "functional = false",
        "functional = false\nattributes = {}",
        "attributes = {}",
        "must be list",
    ),
    "tensor is no table": (X, '"x"', FIRST - 9, "tensor `` must be a table"),
    "attribute is no table": (K, "3", "# the second", "attribute `` must be a table"),
    "shape is text": ('shape = ["T", "E"]', 'shape = "T"', 'shape = "T"', "`shape` of tensor `logits` must be list"),
    "optional is text": (
        'optional = true, doc = "what to add"',
        'optional = "yes", doc = "what to add"',
        '"yes"',
        "must be bool",
    ),
    "fill is text": ("fill = -1", 'fill = "-1"', 'fill = "-1"', "`fill` of tensor `ids` must be int"),
    "pools is text": (
        'pools = ["S"]',
        'pools = "S"',
        'pools = "S"',
        "`pools` of tensor `slots` must be a list of names",
    ),
    "choices is text": (
        MODE,
        'choices = "slow", default = "slow"',
        'choices = "slow"',
        "`choices`.* must be a list of names",
    ),
    "choices are numbers": (
        MODE,
        'choices = [1, 2], default = "slow"',
        "[1, 2]",
        "`choices`.* must be a list of names",
    ),
    "free is text": (
        "workspace = true",
        'workspace = true\nfree = "S"',
        'free = "S"',
        "`free`.* must be a list of names",
    ),
    "together of text": (
        '[["extra", "more"]]',
        '["extra"]',
        'together = ["extra"]',
        "`together`.* must be a list of names",
    ),
    "bound is text": (
        SCALE,
        SCALE.replace("min = 0", 'min = "0"'),
        '"scale"',
        "`min` of attribute `scale` must be a finite",
    ),
    "bound is infinite": (
        SCALE,
        SCALE.replace("max = 8", "max = inf"),
        '"scale"',
        "`max` of attribute `scale` must be a finite",
    ),
    "types is a list": ("[types]\nX = [", "types = [", "types = [", "`types` of the schema must be dict"),
    # names
    "operator name": ('name = "chosen"', 'name = "cho-sen"', "cho-sen", "`cho-sen` is no good name for operator"),
    "Python keyword": ('name = "taps"', 'name = "lambda"', '"lambda"', "`lambda` is no good name for tensor"),
    "C++ keyword": ('name = "taps"', 'name = "double"', '"double"', "`double` is no good name for tensor"),
    "C++ keyword as attribute": ('name = "flag"', 'name = "template"', "template", "`template` is no good name"),
    "C++ keyword as symbol": (
        TAPS,
        TAPS.replace("KC", "int"),
        '"taps"',
        "`int` is no good name for an axis of tensor `taps`",
    ),
    "name of generated code": ('name = "taps"', 'name = "workspace"', '"workspace"', "`workspace` is no good name"),
    "name of a struct member": ('name = "flag"', 'name = "given"', "given", "`given` is no good name"),
    "type name": ("X = [", "'X Y' = [", "'X Y'", "`X Y` is no good name for a type"),
    "derived name": ("{ half =", "{ 'a b' =", "derived", "`a b` is no good name for a derived symbol"),
    "choice name": (MODE, MODE.replace('"fast"', '"very fast"'), "very fast", "choice `very fast` of attribute `mode`"),
    "choice twice": (
        MODE,
        MODE.replace('"fast"', '"slow"'),
        '["slow", "slow"]',
        "choice `slow` of attribute `mode`.* once",
    ),
    # duplicates
    "duplicate operator name": ('name = "chosen"', 'name = "packed"', None, "operator `packed` is listed twice"),
    "duplicate number": ("number = 7", "number = 1 # again", "number = 1 # again", "number 1 is already `packed`'s"),
    "duplicate tensor": ('name = "taps"', 'name = "x"', '"T", "C"], dtype = "X", doc', "`x` is named twice"),
    "tensor and attribute": (
        'name = "flag"',
        'name = "taps"',
        '"KC"], dtype',
        "`taps` is named twice in operator `packed`",
    ),
    "tensor and symbol": ('name = "taps"', 'name = "KC"', 'name = "KC"', "`KC` is named twice"),
    "attribute and axis": (SCALE, SCALE.replace('"scale"', '"S"'), 'name = "S"', "attribute `S`.* named as an axis"),
    # types and dtypes
    "type of no dtype": ('X = ["bfloat16"', 'X = ["bfloat17"', "bfloat17", "type `X` must list dtypes out of bfloat16"),
    "empty type": ('X = ["bfloat16", "float16", "float32"]', "X = []", "X = []", "type `X` must list dtypes"),
    "type hides a dtype": ("[types]", '[types]\nint32 = ["bool"]', 'int32 = ["bool"]', "type `int32` hides a dtype"),
    "unused type": ("[types]", '[types]\nZ = ["bool"]', 'Z = ["bool"]', "type `Z` is never used"),
    "unknown dtype": (
        TAPS,
        TAPS.replace("float32", "float64"),
        "float64",
        "dtype `float64` of tensor `taps` is neither",
    ),
    # tensors
    "unknown role": (
        'role = "inout"',
        'role = "output"',
        '"output"',
        "role of tensor `pool` must be one of in, inout, out",
    ),
    "unknown strides": (
        'strides = "matrix"',
        'strides = "dense"',
        '"dense"',
        "strides of tensor `pool` must be one of last",
    ),
    "unknown values": (
        'values = "initial_slots"',
        'values = "slot"',
        '"slot"',
        "values of tensor `slots` must be one of",
    ),
    "values of another dtype": (
        SLOTS,
        SLOTS.replace("int32", "bool"),
        '"slots"',
        "`slots` has values to check, so it must be",
    ),
    "values of a cube": (
        SLOTS,
        SLOTS.replace('["N"]', '["N", "N", "N"]'),
        '"slots"',
        "`slots` has values.* vector or matrix",
    ),
    "pools without values": (
        TAPS,
        TAPS.replace(", doc", ', pools = ["S"], doc'),
        '"taps"',
        "`pools` of tensor `taps` goes",
    ),
    "values without pools": (', pools = ["S"]', "", '"slots"', "`pools` of tensor `slots` goes with values"),
    "too many pools": ('pools = ["S"]', 'pools = ["S", "S", "S"]', '"slots"', "tensor `slots` has more than 2 pools"),
    "fill of an input": (
        TAPS,
        TAPS.replace(", doc", ", fill = 0, doc"),
        '"taps"',
        "`fill` of tensor `taps` is for outputs",
    ),
    "optional output": (
        COUNT,
        COUNT.replace(", doc", ", optional = true, doc"),
        '"count"',
        "`count` is an output and cannot",
    ),
    "too many axes": (TAPS, TAPS.replace('"KC"', '"KC", "1", "1", "1", "1"'), '"taps"', "`taps` has more than 4 axes"),
    "outputs not last": (
        X,
        Y.replace('"y"', '"w"') + ",\n  " + X,
        FIRST,
        "outputs of operator `packed` must come last",
    ),
    "first tensor optional": (
        X,
        X.replace(", doc", ", optional = true, doc"),
        FIRST,
        "first tensor of operator `packed`",
    ),
    "output axis unknown to inputs": (
        COUNT,
        COUNT.replace('"1"', '"Q", "Q"'),
        '"count"',
        "axis `Q` of output `count` must",
    ),
    "output axis with a factor": (Y, Y.replace('["T"', '["2*T"'), '"y"', r"axis `2\*T` of output `y` must"),
    "output axis of an optional": (COUNT, COUNT.replace('"1"', '"I"'), '"count"', "axis `I` of output `count` must"),
    # symbols and expressions
    "symbol used once": (
        TAPS,
        TAPS.replace('"KC"', '"KC", "TYPO"'),
        "TYPO",
        "symbol `TYPO` of operator `packed` is used once",
    ),
    "free symbol used twice": (
        "workspace = true",
        'workspace = true\nfree = ["C"]',
        "free = ",
        "`free` symbol `C`.* used",
    ),
    "unknown symbol": (
        'require = ["k <= E"]',
        'require = ["k <= F"]',
        "k <= F",
        "symbol `F` of operator `chosen` is no axis",
    ),
    "unknown pool": ('pools = ["S"]', 'pools = ["SS"]', '"SS"', "symbol `SS` of operator `packed` is no axis"),
    "symbol of optionals alone": (
        'require = ["k <= E"]',
        'require = ["I >= 1"]',
        "2*I",
        "`I`.* bound by optional tensors alone",
    ),
    "T not first": (
        X,
        X.replace('"T", "C"', '"C", "T"'),
        'name = "cu_seqlens"',
        "packed by cu_seqlens, so its first symbol",
    ),
    "axis of two symbols": (
        TAPS,
        TAPS.replace('"KC"', '"KC+S"'),
        '"taps"',
        r"shape of tensor `taps`: axis 'KC\+S' must be",
    ),
    "axis of a float": (TAPS, TAPS.replace('"KC"', '"2.5"'), '"taps"', "shape of tensor `taps`: axis '2.5' must be"),
    "negative axis": (TAPS, TAPS.replace('"KC"', '"1-2"'), '"taps"', "shape of tensor `taps`: axis '1-2' must be"),
    "axis is a number": (TAPS, TAPS.replace('"KC"', "4"), '"taps"', "shape of tensor `taps`"),
    "bad expression": ('["KC >= 1"]', '["KC >= "]', '"KC >= "', "`require`: 'KC >= ' is not an expression"),
    "call in an expression": ('["KC >= 1"]', '["abs(KC) >= 1"]', "abs(KC)", r"`require`: .*`abs\(KC\)` is not allowed"),
    "logic in an expression": ('["KC >= 1"]', '["KC >= 1 and S >= 1"]', "KC >= 1 and", "`require`: .* is not allowed"),
    "comment in an expression": ('["KC >= 1"]', '["KC >= 1 # */"]', "# */", "`require`: .* is not an expression"),
    "name beyond ASCII": ('["KC >= 1"]', '["\u039a >= 1"]', "\u039a", "`require`: .* is not an expression"),
    "zero byte in an expression": (
        '["KC >= 1"]',
        '["KC\\u0000 >= 1"]',
        "\\u0000",
        "`require`: .* is not an expression",
    ),
    "fraction in whole arithmetic": (
        '["KC >= 1"]',
        '["KC * 0.5 >= 1"]',
        "KC * 0.5",
        "`require`: .*`0.5` inside whole-number",
    ),
    "power in whole arithmetic": (
        '"C ** -0.5"',
        '"2 * C ** -0.5"',
        '"scale"',
        r"`default`: .*`C \*\* \(-0.5\)` inside whole",
    ),
    "too large a number": (
        '["KC >= 1"]',
        '["KC >= 99999999999"]',
        "99999999999",
        "`require`: .*99999999999 is too large",
    ),
    "comparison of comparisons": (
        '["KC >= 1"]',
        '["(KC >= 1) == 1"]',
        "(KC >= 1)",
        "`require`: .*comparison of comparisons",
    ),
    # attributes
    "unknown attribute type": (
        'type = "bool"',
        'type = "string"',
        '"string"',
        "type of attribute `flag` must be one of int",
    ),
    "bad default of a bool": (
        "default = false",
        'default = "no"',
        '"flag"',
        "bad default 'no' of attribute `flag`, which is bool",
    ),
    "bad default of an enum": (
        MODE,
        MODE.replace('default = "slow"', 'default = "none"'),
        'default = "none", doc = "how"',
        "bad default 'none' of attribute `mode`",
    ),
    "float default of an int": (
        K,
        K.replace("min = 1", "min = 1, default = 1.5"),
        'name = "k"',
        "bad default 1.5 of attribute `k`",
    ),
    "default outside the domain": (
        K,
        K.replace("min = 1", "min = 1, default = 0"),
        'name = "k"',
        "default 0 of attribute `k` lies outs",
    ),
    "default is a sum": (
        K,
        K.replace("min = 1", 'min = 1, default = "1 + 1"'),
        'name = "k"',
        "default .* must be a number or use",
    ),
    "enum without choices": (
        MODE,
        'default = "slow"',
        'default = "slow", doc',
        "`choices` of attribute `mode` goes with",
    ),
    "choices of an int": (
        K,
        K.replace("min = 1", 'choices = ["a"]'),
        'name = "k"',
        "`choices` of attribute `k` goes with type enum",
    ),
    "domain of a bool": (
        "default = false",
        "default = false, min = 0",
        '"flag"',
        "attribute `flag` is bool and has no domain",
    ),
    "min and above": (
        SCALE,
        SCALE.replace("max = 8", "above = 0"),
        '"scale"',
        "attribute `scale` has both `min` and `above`",
    ),
    "other choices elsewhere": (
        MODE,
        MODE.replace('"fast"', '"other"'),
        'default = "fast"',
        "`mode` has other choices in `packed`",
    ),
    # groups
    "together of an input": (
        '[["extra", "more"]]',
        '[["extra", "x"]]',
        'name = "x"',
        "`x` in `together` or `needs` is no optional",
    ),
    "needs an unknown": ("workspace = true", 'needs = { extra = "nil" }', '"nil"', "`nil` in `together` or `needs`"),
    "needs a number": ("workspace = true", "needs = { extra = 3 }", "extra = 3", "`3` in `together` or `needs`"),
    # text
    "summary of two lines": (
        '"Does it."',
        '"Does\\nit."',
        "Does\\nit",
        "`summary` of operator `packed` must be one line",
    ),
    "doc of two lines": ('"what to rank"', '"what\\nto rank"', "to rank", "`doc` of tensor `logits` must be one line"),
    "control character": ('"how much"', '"how\\u0000much"', "u0000", "`doc` of attribute `scale` must be one line"),
    "turned text": (
        'source = "nowhere"\naligned = "nothing"\ntensors = [\n  { name = "src"',
        'source = "\u202eerehwon"\naligned = "nothing"\ntensors = [\n  { name = "src"',
        "erehwon",
        "`source` of operator `moved` must be one line without control characters",
    ),
}


def test_the_base_breaks_no_rule():
    schema = model.parse_schema(BASE)
    assert [op.name for op in schema.operators] == ["packed", "chosen", "moved"]


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule):
    old, new, marker, message = RULES[rule]
    text = changed(old, new)
    with pytest.raises(model.SchemaError) as refusal:
        model.parse_schema(text, "dir/some.toml")
    file, line, rest = str(refusal.value).split(":", 2)
    assert file == "dir/some.toml"
    assert re.search(message, rest), rest
    if marker is not None:
        expected = marker if isinstance(marker, int) else line_of(text, marker)
        assert (int(line), rest) == (expected, rest)
    else:
        assert int(line) == [n for n, row in enumerate(text.splitlines(), 1) if row == new][1]


def test_numbers_order_the_operators():
    text = BASE.replace("number = 9", "number = 3")
    assert [op.name for op in model.parse_schema(text).operators] == ["packed", "moved", "chosen"]


def test_toml_errors_name_the_file():
    with pytest.raises(model.SchemaError, match=r"^dir/some\.toml: .*line 2"):
        model.parse_schema("schema = 1\nnumber ==\n", "dir/some.toml")


@pytest.mark.parametrize("limit", ["arguments", "symbols"])
def test_what_the_library_has_room_for(limit):
    if limit == "arguments":
        more = [f'{{ name = "f{i}", type = "bool", default = false, doc = "d" }}' for i in range(24)]
        text = changed('  { name = "flag"', "  " + ",\n  ".join(more) + ',\n  { name = "flag"')
    else:
        more = [
            f'{{ name = "t{i}", role = "in", shape = ["A{i}", "A{i}"], dtype = "X", doc = "d" }}' for i in range(14)
        ]
        text = changed('  { name = "taps"', "  " + ",\n  ".join(more) + ',\n  { name = "taps"')
    message = {"arguments": "more than 30 tensors and attributes", "symbols": "more than 16 symbols"}[limit]
    with pytest.raises(model.SchemaError, match=f"operators.toml:15: operator `packed` has {message}"):
        model.parse_schema(text)
