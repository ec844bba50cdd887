"""merge_live_rows: output and refreshed cache, bit for bit."""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from .arena import DENSE, LAYOUTS, Operand
from .checks import same_bits
from .inputs import DTYPES, Case, normal, unique
from .runner import Problem, Result
from .test_live_row_routes import LIVE, make_live

OPERATOR = "merge_live_rows"


@dataclass(frozen=True)
class MergeCase(Case):
    dtype: str
    tokens: int
    width: int
    live: str = "some"
    layout: str = "dense"


def smoke_cases():
    for dtype, tokens, live in product(DTYPES, (1, 32, 64), LIVE):
        yield MergeCase(dtype, tokens, 96, live, "rows", smoke=True)
    yield MergeCase("bf16", 32, 2048, smoke=True)
    yield MergeCase("bf16", 0, 2048, smoke=True)


def full_cases():
    main = product(DTYPES, (1, 2, 7, 33, 257), (1, 65, 2048), LIVE)
    for line, layout in zip(main, cycle(("dense", "rows", "gapped", "offset"))):
        yield MergeCase(*line, layout)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    live = make_live(rng, case.tokens, case.live)
    fresh = normal(rng, (case.tokens, case.width), dtype)
    fresh[~live] = np.nan
    cache = normal(rng, (case.tokens, case.width), dtype)
    cache[:, :: max(case.width // 4, 1)] = dtype.type(-0.0)
    if case.tokens:
        cache[0, 0] = np.nan
    out, new_cache = reference.merge_live_rows(fresh, cache, live)

    def verify(values, notes):
        same_bits("out", values["out"], out)
        same_bits("cache", values["cache"], new_cache)

    layout = LAYOUTS[case.layout](2)
    arguments = {
        "fresh": Operand(fresh, layout),
        "cache": Operand(cache, layout, mutable=True),
        "live": Operand(live),
    }
    outputs = {"out": Result(out.shape, dtype, layout=layout if case.layout == "rows" else DENSE)}
    return Problem(OPERATOR, arguments, outputs, verify)


def test_merge_live_rows(check):
    check(build)
