"""preview_conv1d: the commit's read, with a pool that stays bit for bit."""

from dataclasses import dataclass
from itertools import cycle, product

import reference

from .arena import DENSE, LAYOUTS, Operand, rows
from .checks import DATA_BOUNDS, close
from .inputs import DTYPES, INDEX_CYCLE, PREVIEW_WIDTHS, Case, Sequences, make_slots, normal, unique
from .runner import Problem, Result

OPERATOR = "preview_conv1d"


@dataclass(frozen=True)
class PreviewConvCase(Case):
    dtype: str
    channels: int
    lengths: tuple[int, ...]
    slots: str = "discard"
    activation: str = "silu"
    bias: bool = True
    layout: str = "dense"
    index: str = "i32"
    tail: int = 0
    hint: int | None = None


READS = ("discard", "padded", "mixed", "shared_read")
UNEQUAL = [(4, 7), (1, 8, 32), (0, 5, 0, 2), (7, 33, 1, 64), (0,), (), (70,)]


def smoke_cases():
    for dtype, width, count in product(("bf16", "fp16", "fp32"), (1, 8, 32), (1, 3, 4)):
        yield PreviewConvCase(dtype, 40, (width,) * count, layout="rows", smoke=True)
    for slots in READS:
        yield PreviewConvCase("bf16", 40, (0, 4, 7), slots, bias=False, index="i64", tail=2, smoke=True)
    yield PreviewConvCase("bf16", 8192, (32,), smoke=True)
    yield PreviewConvCase("bf16", 4096, (8, 8, 8), "mixed", smoke=True)


def full_cases():
    equal = [(width,) * count for width in PREVIEW_WIDTHS for count in (1, 3, 4)]
    main = product(DTYPES, equal + UNEQUAL, READS, ("none", "silu"), (True, False))
    layouts = cycle(("dense", "rows", "gapped", "offset"))
    channels = cycle((24, 65, 96, 7, 200))
    tails = cycle((0, 0, 3, 0, 0, 1, 0))
    hints = cycle((None, None, 64, 1, None, 8, None, None, None, None, None))
    for line, layout, width, index, tail, hint in zip(main, layouts, channels, cycle(INDEX_CYCLE), tails, hints):
        dtype, lengths, slots, activation, bias = line
        yield PreviewConvCase(dtype, width, lengths, slots, activation, bias, layout, index, tail, hint)
    for dtype, layout in product(DTYPES, LAYOUTS):
        yield PreviewConvCase(dtype, 33, (32,) * 64, "mixed", layout=layout)
        yield PreviewConvCase(dtype, 33, tuple(n % 9 for n in range(64)), "mixed", layout=layout)
        yield PreviewConvCase(dtype, 8192, (8, 32), layout=layout)
        yield PreviewConvCase(dtype, 4096, (1, 0, 32, 7), "mixed", layout=layout)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    sequences = Sequences(case.lengths, case.tail)
    slots = make_slots(case.slots, sequences.count, rng, case.index)
    x = normal(rng, (sequences.tokens, case.channels), dtype)
    weight = normal(rng, (case.channels, 4), dtype, 0.5)
    bias = normal(rng, (case.channels,), dtype, 0.5) if case.bias else None
    pool = slots.poison_unread(normal(rng, (slots.pool, case.channels, 3), dtype))
    cu_seqlens = sequences.cu_seqlens(case.index)
    y = reference.preview_conv1d(x, weight, bias, pool, cu_seqlens, slots.initial, case.activation)

    def verify(values, notes):
        close("y", values["y"][: sequences.owned], y[: sequences.owned], DATA_BOUNDS[dtype.name])

    layout = LAYOUTS[case.layout]
    arguments = {
        "x": Operand(x, layout(2)),
        "weight": Operand(weight),
        "bias": None if bias is None else Operand(bias),
        "conv_state": Operand(pool, rows(3) if case.layout in ("rows", "gapped") else DENSE),
        "cu_seqlens": Operand(cu_seqlens),
        "initial_state_indices": Operand(slots.initial),
        "activation": case.activation,
    }
    if case.hint is not None:
        arguments["max_seqlen"] = case.hint
    outputs = {"y": Result(x.shape, dtype, owned=sequences.owned, layout=layout(2))}
    beyond = max(case.lengths, default=0) > 64
    return Problem(OPERATOR, arguments, outputs, verify, may_refuse="off-cpu" if beyond else "never")


def test_preview_conv1d(check):
    check(build)
