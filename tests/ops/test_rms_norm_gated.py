"""rms_norm_gated."""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from .arena import LAYOUTS, Operand, gapped, packed, rows
from .checks import DATA_BOUNDS, close
from .inputs import DTYPES, Case, normal, unique
from .runner import Problem, Result

OPERATOR = "rms_norm_gated"


@dataclass(frozen=True)
class NormCase(Case):
    dtype: str
    tokens: int
    heads: int
    width: int
    values: str = "usual"
    layout: str = "dense"
    eps: float = 1e-6


VALUES = ("usual", "large", "small", "some_zero_rows", "nonfinite")
LAYOUT_NAMES = ("dense", "packed", "rows", "gapped", "offset")


def smoke_cases():
    for dtype, tokens, layout in product(DTYPES, (1, 8, 32), LAYOUT_NAMES):
        yield NormCase(dtype, tokens, 4, 128, layout=layout, smoke=True)
    for values in VALUES:
        yield NormCase("bf16", 7, 32, 128, values, smoke=True)
    yield NormCase("bf16", 0, 32, 128, smoke=True)


def full_cases():
    main = product(DTYPES, (1, 2, 7, 33, 257), (1, 16, 32), (64, 96, 128), VALUES)
    for line, layout, eps in zip(main, cycle((*LAYOUT_NAMES, "packed")), cycle((1e-6, 1e-6, 1e-5, 1e-3))):
        yield NormCase(*line, layout, eps)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    shape = (case.tokens, case.heads, case.width)
    x, z = normal(rng, shape, dtype), normal(rng, shape, dtype)
    x = _change(x, case.values)
    weight = (1 + 0.2 * rng.standard_normal(case.width)).astype(dtype)
    y = reference.rms_norm_gated(x, weight, z, case.eps)

    def verify(values, notes):
        close("y", values["y"], y, DATA_BOUNDS[dtype.name])

    if case.layout == "packed":
        places = packed("xz", {"x": shape, "z": shape})
    else:
        places = dict.fromkeys("xz", LAYOUTS[case.layout](3))
    arguments = {
        "x": Operand(x, places["x"]),
        "weight": Operand(weight),
        "z": Operand(z, places["z"]),
        "eps": case.eps,
    }
    out = {"rows": rows(3), "gapped": gapped(3)}.get(case.layout, rows(3, gap=0))
    return Problem(OPERATOR, arguments, {"y": Result(shape, dtype, layout=out)}, verify)


def _change(x, values):
    if values in ("large", "small"):
        return x * x.dtype.type({"large": 200, "small": 0.01}[values])
    if values == "some_zero_rows":
        x[::2, 0] = 0
    if values == "nonfinite" and x.size:
        x[-1, -1, 3] = np.nan
    return x


def test_rms_norm_gated(check):
    check(build)
