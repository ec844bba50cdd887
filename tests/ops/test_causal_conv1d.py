"""causal_conv1d: outputs, and a pool that is exact: it only ever holds copies of inputs."""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from .arena import DENSE, LAYOUTS, Operand, rows
from .checks import DATA_BOUNDS, close, same_bits
from .inputs import DTYPES, INDEX_CYCLE, PREVIEW_WIDTHS, SLOT_PATTERNS, Case, Sequences, make_slots, normal, unique
from .runner import Problem, Result

OPERATOR = "causal_conv1d"


@dataclass(frozen=True)
class ConvCase(Case):
    dtype: str
    channels: int
    lengths: tuple[int, ...]
    slots: str = "same"
    activation: str = "silu"
    bias: bool = True
    layout: str = "dense"
    index: str = "i32"
    tail: int = 0
    taps: int = 4
    hint: int | None = None
    nonfinite: bool = False


EQUAL = [(w,) * n for w in PREVIEW_WIDTHS for n in (1, 3, 4)]
UNEQUAL = [(4, 7), (1, 8, 32), (0, 5, 0, 2), (2, 0, 0), (3, 1, 2), (7, 33, 1, 64), (300,), (0,), ()]


def smoke_cases():
    for dtype, width, count in product(("bf16", "fp16", "fp32"), (1, 8, 32), (1, 3, 4)):
        yield ConvCase(dtype, 40, (width,) * count, "separate", layout="rows", smoke=True)
    for dtype, slots in product(("bf16", "fp32"), SLOT_PATTERNS):
        yield ConvCase(dtype, 40, (4, 7), slots, "none", smoke=True)
        yield ConvCase(dtype, 40, (0, 5, 0, 2, 1), slots, "silu", bias=False, index="i64", tail=2, smoke=True)
    yield ConvCase("bf16", 8192, (32,), "separate", layout="rows", smoke=True)
    yield ConvCase("bf16", 4096, (8, 8, 8), "separate", smoke=True)
    yield ConvCase("bf16", 1024, (100, 4124), "separate", smoke=True)  # enough for blocks of neighbouring runs
    yield ConvCase("bf16", 24, (5, 3, 4), "separate", nonfinite=True, smoke=True)


def full_cases():
    main = product(DTYPES, EQUAL + UNEQUAL, SLOT_PATTERNS, ("none", "silu"), (True, False))
    layouts = cycle(("dense", "rows", "gapped", "offset"))
    channels = cycle((24, 65, 96, 7, 200))
    tails = cycle((0, 0, 3, 0, 0, 1, 0))
    hints = cycle((None, None, 64, 1, None, 8, None, None, None, None, None))
    for line, layout, width, index, tail, hint in zip(main, layouts, channels, cycle(INDEX_CYCLE), tails, hints):
        dtype, lengths, slots, activation, bias = line
        yield ConvCase(dtype, width, lengths, slots, activation, bias, layout, index, tail, hint=hint)
    for dtype, layout in product(DTYPES, LAYOUTS):
        yield ConvCase(dtype, 33, (32,) * 64, "mixed", layout=layout)
        yield ConvCase(dtype, 33, tuple(n % 9 for n in range(64)), "mixed", layout=layout)
        yield ConvCase(dtype, 8192, (300,), "separate", layout=layout)
        yield ConvCase(dtype, 4096, (1, 0, 32, 7), "mixed", layout=layout)
        yield ConvCase(dtype, 48, (9, 2, 4), "separate", "none", layout=layout, nonfinite=True)
        yield ConvCase(dtype, 48, (6, 1), "separate", layout=layout, nonfinite=True)
    for dtype, taps in product(DTYPES, (2, 3)):
        yield ConvCase(dtype, 48, (4, 0, 7), "mixed", taps=taps)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    sequences = Sequences(case.lengths, case.tail)
    slots = make_slots(case.slots, sequences.count, rng, case.index)
    x = normal(rng, (sequences.tokens, case.channels), dtype)
    if case.nonfinite:
        _inject(x, sequences, case.activation)
    weight = normal(rng, (case.channels, case.taps), dtype, 0.5)
    bias = normal(rng, (case.channels,), dtype, 0.5) if case.bias else None
    pool = slots.poison_unread(normal(rng, (slots.pool, case.channels, case.taps - 1), dtype))
    cu_seqlens = sequences.cu_seqlens(case.index)

    y, new_pool = reference.causal_conv1d(
        x, weight, bias, pool, cu_seqlens, slots.initial, slots.final, case.activation
    )

    def verify(values, notes):
        close("y", values["y"][: sequences.owned], y[: sequences.owned], DATA_BOUNDS[dtype.name])
        same_bits("conv_state", values["conv_state"], new_pool)

    layout = LAYOUTS[case.layout]
    arguments = {
        "x": Operand(x, layout(2)),
        "weight": Operand(weight),
        "bias": None if bias is None else Operand(bias),
        "conv_state": Operand(pool, rows(3) if case.layout in ("rows", "gapped") else DENSE, mutable=True),
        "cu_seqlens": Operand(cu_seqlens),
        "initial_state_indices": Operand(slots.initial),
        "final_state_indices": Operand(slots.final),
        "activation": case.activation,
    }
    if case.hint is not None:
        arguments["max_seqlen"] = case.hint
    return Problem(
        OPERATOR,
        arguments,
        outputs={"y": Result(x.shape, dtype, owned=sequences.owned, layout=layout(2))},
        verify=verify,
        may_refuse="always" if case.taps != 4 else "never",
    )


def _inject(x, sequences, activation):
    """NaN in the first sequence and, where no activation makes NaN of it, an infinity in the second."""
    first, second = sequences.rows(0).start, sequences.rows(1).start
    x[first + 1, 3] = np.nan
    x[second, 5] = np.inf if activation == "none" else np.nan


def test_causal_conv1d(check):
    check(build)
