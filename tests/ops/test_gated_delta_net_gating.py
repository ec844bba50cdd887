"""gated_delta_net_gating: decays and write strengths, for inputs of any strides and any magnitude."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import reference

from .arena import DENSE, OFFSET, Layout, Operand, interleaved, packed, rows, swapped
from .checks import FP32_BOUND, close, close_gating
from .inputs import DTYPES, Case, normal, unique
from .runner import Problem, Result

OPERATOR = "gated_delta_net_gating"


@dataclass(frozen=True)
class GatingCase(Case):
    dtype: str
    tokens: int
    heads: int
    values: str = "usual"
    layout: str = "dense"


# A_log, a and dt_bias of each kind, from a generator and a shape.
VALUES = {
    "usual": (
        lambda r, n: np.log(r.uniform(1, 16, n)),
        lambda r, s: 2 * r.standard_normal(s),
        lambda r, n: r.uniform(-4, 1, n),
    ),
    "wide": (
        lambda r, n: r.uniform(-3, 3, n),
        lambda r, s: 15 * r.standard_normal(s),
        lambda r, n: r.standard_normal(n),
    ),
    "deep": (
        lambda r, n: r.uniform(-1, 3, n),
        lambda r, s: r.uniform(-80, -40, s),
        lambda r, n: r.uniform(-1, 1, n),
    ),
    "deep_fast": (
        lambda r, n: np.full(n, 50.0),
        lambda r, s: r.uniform(-90, -60, s),
        lambda r, n: r.uniform(-1, 1, n),
    ),
    "threshold": (lambda r, n: np.zeros(n), lambda r, s: r.uniform(19.5, 20.5, s), lambda r, n: np.zeros(n)),
    "subnormal": (lambda r, n: np.zeros(n), lambda r, s: r.uniform(-102, -85, s), lambda r, n: np.zeros(n)),
    # exp(A_log) is beyond FP32, g is not
    "overflowing_rate": (lambda r, n: np.full(n, 100.0), lambda r, s: r.uniform(-80, -50, s), lambda r, n: np.zeros(n)),
    "vanishing": (lambda r, n: np.full(n, 100.0), lambda r, s: np.full(s, -200.0), lambda r, n: np.zeros(n)),
    "steep_shallow": (lambda r, n: np.full(n, 95.0), lambda r, s: r.uniform(-30, -12, s), lambda r, n: np.zeros(n)),
}
LAYOUTS = ("dense", "interleaved", "packed", "rows", "transposed", "spread", "offset")


def smoke_cases():
    for dtype, layout in product(DTYPES, LAYOUTS):
        yield GatingCase(dtype, 33, 8, layout=layout, smoke=True)
    for dtype, values in product(("bf16", "fp32"), VALUES):
        yield GatingCase(dtype, 32, 32, values, "interleaved", smoke=True)
    for tokens in (0, 1):
        yield GatingCase("bf16", tokens, 32, layout="interleaved", smoke=True)


def full_cases():
    for line in product(DTYPES, (0, 1, 7, 32, 257), (1, 2, 16, 32), ("usual", "wide"), LAYOUTS):
        yield GatingCase(*line)
    for line in product(DTYPES, (1, 33), (2, 32), VALUES, LAYOUTS):
        yield GatingCase(*line)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    shape = (case.tokens, case.heads)
    make_rate, make_a, make_bias = VALUES[case.values]
    a, b = make_a(rng, shape).astype(dtype), normal(rng, shape, dtype, 2.0)
    A_log, dt_bias = make_rate(rng, case.heads).astype(np.float32), make_bias(rng, case.heads).astype(dtype)
    g, beta = reference.gated_delta_net_gating(a, b, A_log, dt_bias)
    deep = bool((a.astype(np.float64) + dt_bias.astype(np.float64) < -32).all())

    def verify(values, notes):
        close_gating("g", values["g"], g, deep)
        close("beta", values["beta"], beta, FP32_BOUND)

    layout_a, layout_b = _layouts(case.layout, shape)
    arguments = {
        "a": Operand(a, layout_a),
        "b": Operand(b, layout_b),
        "A_log": Operand(A_log),
        "dt_bias": Operand(dt_bias),
    }
    out = rows(2) if case.layout == "rows" else DENSE
    outputs = {name: Result(shape, np.dtype(np.float32), layout=out) for name in ("g", "beta")}
    return Problem(OPERATOR, arguments, outputs, verify)


def _layouts(name, shape):
    shapes = {"a": shape, "b": shape}
    if name == "interleaved":
        return interleaved("ab", shapes).values()
    if name == "packed":
        return packed("ab", shapes).values()
    one = {"dense": DENSE, "rows": rows(2), "transposed": swapped(2), "spread": Layout(step=3), "offset": OFFSET}[name]
    return one, one


def test_gated_delta_net_gating(check):
    check(build)
