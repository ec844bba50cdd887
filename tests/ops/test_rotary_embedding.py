"""rotary_embedding: rotated dimensions within bounds, the others bit for bit."""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from .arena import LAYOUTS, Operand, packed
from .checks import DATA_BOUNDS, close, same_bits
from .inputs import DTYPES, INDEX_CYCLE, INDEX_TYPES, Case, normal, unique
from .runner import Problem

OPERATOR = "rotary_embedding"


@dataclass(frozen=True)
class RotaryCase(Case):
    dtype: str
    tokens: int
    heads: tuple[int, int, int, int]
    """A, AKV, AD, RD"""
    interleaved: bool = False
    positions: str = "ascending"
    layout: str = "dense"
    index: str = "i32"


TP1 = (16, 2, 256, 64)
TP2 = (8, 1, 256, 64)
SHAPES = (TP1, TP2, (3, 1, 32, 32), (2, 2, 40, 6), (1, 1, 8, 2))
LAYOUT_NAMES = ("dense", "packed", "rows", "gapped", "offset")
POSITIONS = ("ascending", "repeated", "any", "last")
TABLE_ROWS = 97


def smoke_cases():
    for dtype, layout, interleaved in product(DTYPES, LAYOUT_NAMES, (True, False)):
        yield RotaryCase(dtype, 8, TP2, interleaved, "any", layout, smoke=True)
    for tokens, positions in product((0, 1, 32), POSITIONS):
        yield RotaryCase("bf16", tokens, TP1, False, positions, "packed", "i64", smoke=True)


def full_cases():
    main = product(DTYPES, (1, 2, 7, 33, 64), SHAPES, (True, False), POSITIONS)
    for line, layout, index in zip(main, cycle((*LAYOUT_NAMES, "packed")), cycle((*INDEX_CYCLE, "i32", "i32"))):
        yield RotaryCase(*line, layout, index)
    for dtype, layout, interleaved in product(DTYPES, LAYOUT_NAMES, (True, False)):
        yield RotaryCase(dtype, 257, TP1, interleaved, "any", layout)
        yield RotaryCase(dtype, 33, (2, 1, 64, 48), interleaved, "repeated", layout)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    A, AKV, AD, RD = case.heads
    q, k = normal(rng, (case.tokens, A, AD), dtype), normal(rng, (case.tokens, AKV, AD), dtype)
    positions = _make_positions(rng, case)
    angles = np.arange(TABLE_ROWS)[:, None] * 10000.0 ** (-np.arange(RD // 2) * 2 / RD)
    table = np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(dtype)
    rotated = dict(zip("qk", reference.rotary_embedding(positions, q, k, table, case.interleaved)))

    def verify(values, notes):
        for name, before in (("q", q), ("k", k)):
            close(name, values[name], rotated[name], DATA_BOUNDS[dtype.name])
            same_bits(f"{name} beyond the rotary dimensions", values[name][..., RD:], before[..., RD:])

    places = {"q": None, "k": None}
    if case.layout == "packed":
        places = packed("qk", {"q": q.shape, "k": k.shape}, gap=AKV * AD)
    else:
        places = dict.fromkeys(places, LAYOUTS[case.layout](3))
    arguments = {
        "positions": Operand(positions),
        "q": Operand(q, places["q"], mutable=True),
        "k": Operand(k, places["k"], mutable=True),
        "cos_sin": Operand(table),
        "interleaved": case.interleaved,
    }
    return Problem(OPERATOR, arguments, {}, verify)


def _make_positions(rng, case):
    positions = {
        "ascending": np.arange(case.tokens) % TABLE_ROWS,
        "repeated": np.repeat(rng.integers(0, TABLE_ROWS, case.tokens // 2 + 1), 2)[: case.tokens],
        "any": rng.integers(0, TABLE_ROWS, case.tokens),
        "last": np.full(case.tokens, TABLE_ROWS - 1),
    }[case.positions]
    return positions.astype(INDEX_TYPES[case.index])


def test_rotary_embedding(check):
    check(build)
