"""preview_gated_delta_rule: three ways to read a block, and a pool that stays bit for bit."""

from dataclasses import dataclass
from itertools import cycle, product

import reference

from . import delta
from .arena import Operand
from .checks import close_by_length
from .inputs import DTYPES, INDEX_CYCLE, PREVIEW_WIDTHS, Case, Sequences, make_slots, unique
from .runner import Problem, Result

OPERATOR = "preview_gated_delta_rule"


@dataclass(frozen=True)
class PreviewDeltaCase(Case):
    dtype: str
    heads: tuple[int, int, int, int]
    lengths: tuple[int, ...]
    slots: str = "discard"
    read: str = "bidirectional"
    l2norm: bool = True
    layout: str = "dense"
    state: str = "k_last"
    index: str = "i32"
    tail: int = 0
    scale: float | None = None
    decay: str = "usual"
    hint: int | None = None


READ_MODES = ("bidirectional", "block", "causal")
READS = ("discard", "padded", "mixed", "shared_read")
SMALL_DIMS = (delta.SMALL, delta.WIDE_V, delta.WIDE_K, delta.FULL_DIMS)
UNEQUAL = [(4, 7), (1, 8, 32), (0, 5, 0, 2), (33, 1, 0, 64), (0,), ()]


def smoke_cases():
    for width, count, read in product((1, 8, 32), (1, 3, 4), READ_MODES):
        yield PreviewDeltaCase("bf16", delta.SMALL, (width,) * count, read=read, layout="packed", smoke=True)
        yield PreviewDeltaCase("fp32", delta.WIDE_V, (width,) * count, "mixed", read, False, smoke=True)
    for read, slots in product(READ_MODES, READS):
        yield PreviewDeltaCase("fp16", delta.WIDE_K, (0, 4, 7), slots, read, index="i64", tail=2, smoke=True)
    for read, state in product(READ_MODES, delta.STATE_LAYOUTS):
        yield PreviewDeltaCase("bf16", delta.V96, (8, 7), "mixed", read, state=state, smoke=True)
    for heads in (delta.TP1, delta.TP2):
        yield PreviewDeltaCase("bf16", heads, (8,), layout="packed", smoke=True)
    yield PreviewDeltaCase("fp32", delta.SMALL, (70, 3), smoke=True)


def full_cases():
    equal = [(width,) * count for width in PREVIEW_WIDTHS for count in (1, 3)] + [(1,) * 4, (8,) * 4, (32,) * 4]
    main = product(DTYPES, SMALL_DIMS, equal + UNEQUAL, READ_MODES, (True, False))
    slots_of = cycle(READS)
    layouts = cycle(("dense", "packed", "gapped", "offset", "packed"))
    states = cycle(("k_last", "k_last", "v_last", "k_last_gaps", "k_last", "v_last_gaps", "k_last"))
    tails = cycle((0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0))
    scales = cycle((None, None, 1.0, None, 0.25))
    decays = cycle(("usual", "strong", "usual", "none", "usual", "usual", "usual", "usual", "usual", "usual", "usual"))
    hints = cycle((None, None, 64, 1, None, 8, None, None, None, None, None, None, None))
    options = zip(slots_of, layouts, states, cycle(INDEX_CYCLE), tails, scales, decays, hints)
    for (dtype, heads, lengths, read, l2norm), rest in zip(main, options):
        slots, *remaining = rest
        yield PreviewDeltaCase(dtype, heads, lengths, slots, read, l2norm, *remaining)
    for dtype, read, state in product(DTYPES, READ_MODES, delta.STATE_LAYOUTS):
        yield PreviewDeltaCase(dtype, delta.V96, (8, 0, 32), "mixed", read, state=state)
        yield PreviewDeltaCase(dtype, (1, 2, 64, 64), (8,) * 64, "mixed", read, state=state)
        yield PreviewDeltaCase(dtype, (1, 2, 64, 64), tuple(n % 9 for n in range(64)), "mixed", read, state=state)
    for dtype, read, lengths in product(DTYPES, READ_MODES, ((65,), (100, 4), (257,))):
        yield PreviewDeltaCase(dtype, delta.SMALL, lengths, read=read)
    for dtype, heads, read in product(DTYPES, (delta.TP1, delta.TP2), READ_MODES):
        for lengths in ((1,), (1, 1, 1), (8, 0, 32), (32, 32, 32)):
            yield PreviewDeltaCase(dtype, heads, lengths, "mixed", read, layout="packed")


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    sequences = Sequences(case.lengths, case.tail)
    slots = make_slots(case.slots, sequences.count, rng, case.index)
    tensors = delta.make_tensors(rng, case.heads, sequences.tokens, dtype, case.l2norm, case.decay)
    state = delta.make_state(rng, case.heads, slots)
    cu_seqlens = sequences.cu_seqlens(case.index)
    o = reference.preview_gated_delta_rule(
        **tensors,
        state=state,
        cu_seqlens=cu_seqlens,
        initial_state_indices=slots.initial,
        scale=case.scale,
        l2norm=case.l2norm,
        read=case.read,
    )

    def verify(values, notes):
        got, wanted = sequences.split(values["o"]), sequences.split(o)
        close_by_length("o", got, wanted, case.lengths, delta.bound_of(dtype))

    arguments = {
        **delta.operands(tensors, case.layout),
        "state": Operand(state, delta.STATE_LAYOUTS[case.state]),
        "cu_seqlens": Operand(cu_seqlens),
        "initial_state_indices": Operand(slots.initial),
        "scale": case.scale,
        "l2norm": case.l2norm,
        "read": case.read,
    }
    if case.hint is not None:
        arguments["max_seqlen"] = case.hint
    outputs = {"o": Result(o.shape, dtype, owned=sequences.owned, layout=delta.output_layout(case.layout))}
    return Problem(OPERATOR, arguments, outputs, verify, may_refuse=_may_refuse(case))


def _may_refuse(case):
    if case.heads == delta.V96:
        return "always"
    return "off-cpu" if max(case.lengths, default=0) > 64 else "never"


def test_preview_gated_delta_rule(check):
    check(build)
