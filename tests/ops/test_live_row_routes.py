"""live_row_routes: all four outputs exactly."""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from .arena import LAYOUTS, Operand
from .checks import same_bits
from .inputs import INDEX_CYCLE, INDEX_TYPES, Case, unique
from .runner import Problem, Result

OPERATOR = "live_row_routes"


@dataclass(frozen=True)
class LiveRoutesCase(Case):
    tokens: int
    k: int
    live: str = "some"
    layout: str = "dense"
    index: str = "i32"


LIVE = ("some", "all", "none", "first", "last")


def smoke_cases():
    for tokens, live in product((1, 7, 32, 64), LIVE):
        yield LiveRoutesCase(tokens, 8, live, smoke=True)
    yield LiveRoutesCase(0, 8, smoke=True)
    yield LiveRoutesCase(33, 8, layout="rows", index="i64", smoke=True)


def full_cases():
    main = product((1, 2, 31, 33, 64, 257, 1025, 4096), (1, 4, 8), LIVE)
    for line, layout, index in zip(main, cycle(LAYOUTS), cycle(INDEX_CYCLE)):
        yield LiveRoutesCase(*line, layout, index)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng = case.rng()
    shape = (case.tokens, case.k)
    ids = rng.integers(-1, 256, shape).astype(INDEX_TYPES[case.index])
    live = make_live(rng, case.tokens, case.live)
    weights = rng.random(shape, np.float32)
    weights[~live] = np.nan
    names = ("ids", "weights", "rows", "count")
    expected = dict(zip(names, reference.live_row_routes(ids, weights, live)))

    def verify(values, notes):
        for name in names:
            same_bits(name, values[name], expected[name])

    layout = LAYOUTS[case.layout](2)
    arguments = {"ids": Operand(ids, layout), "weights": Operand(weights, layout), "live": Operand(live)}
    outputs = {name: Result(array.shape, array.dtype) for name, array in expected.items()}
    return Problem(OPERATOR, arguments, outputs, verify)


def make_live(rng, tokens, pattern):
    live = rng.random(tokens) < 0.5
    if pattern != "some":
        live[:] = pattern == "all"
    if tokens and pattern in ("first", "last"):
        live[0 if pattern == "first" else -1] = True
    return live


def test_live_row_routes(check):
    check(build)
