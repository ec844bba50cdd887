"""fused_moe: routed and shared experts, for every kind of routing.

Experts without a token hold NaN, and so do the weights of skipped routes: reading either shows.
"""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from .arena import DENSE, LAYOUTS, Operand, rows
from .checks import COMPOUND_BOUNDS, close
from .inputs import DTYPES, INDEX_CYCLE, INDEX_TYPES, Case, normal, unique
from .runner import Problem, Result

OPERATOR = "fused_moe"


@dataclass(frozen=True)
class MoeCase(Case):
    dtype: str
    tokens: int
    sizes: tuple[int, int, int, int]
    """E, k, D, I"""
    routing: str = "spread"
    shared: int = 0
    """Its intermediate size; 0 for no shared expert."""
    gate: bool = False
    routed_scale: float = 1.0
    layout: str = "dense"
    index: str = "i32"
    nonfinite: bool = False


SMALL = (16, 4, 64, 32)
ODD = (7, 2, 72, 40)
MANY = (64, 8, 128, 64)
TP1 = (256, 8, 2048, 512)
TP2 = (256, 8, 2048, 256)
REAL_WIDTH = (24, 8, 2048, 512)
ROUTING = ("spread", "omitted", "one_expert", "same_expert_k_times", "none", "two_experts")


def smoke_cases():
    for dtype, tokens, routing in product(DTYPES, (1, 32, 64), ROUTING):
        yield MoeCase(dtype, tokens, SMALL, routing, smoke=True)
    for dtype, (shared, gate), scale in product(("bf16", "fp32"), ((32, False), (48, True)), (1.0, 2.5)):
        yield MoeCase(dtype, 7, MANY, "omitted", shared, gate, scale, "rows", "i64", smoke=True)
    yield MoeCase("bf16", 0, SMALL, shared=32, smoke=True)
    yield MoeCase("bf16", 5, SMALL, nonfinite=True, smoke=True)
    yield MoeCase("bf16", 32, REAL_WIDTH, shared=512, gate=True, smoke=True)
    yield MoeCase("bf16", 1, REAL_WIDTH, smoke=True)


def full_cases():
    main = product(DTYPES, (1, 2, 7, 32, 64, 257), (SMALL, ODD, MANY), ROUTING, ((0, False), (32, False), (48, True)))
    scales = cycle((1.0, 2.5, 1.0, 0.5, 1.0))
    layouts = cycle(("dense", "rows", "gapped", "offset"))
    options = zip(scales, layouts, cycle((*INDEX_CYCLE, "i32")), cycle((False,) * 10 + (True,)))
    for (dtype, tokens, sizes, routing, (shared, gate)), rest in zip(main, options):
        yield MoeCase(dtype, tokens, sizes, routing, shared, gate, *rest)
    for dtype in DTYPES:
        yield MoeCase(dtype, 0, SMALL, shared=32)
        yield MoeCase(dtype, 0, SMALL)
        yield MoeCase(dtype, 4096, SMALL, "spread", 32, True)
        yield MoeCase(dtype, 4096, MANY, "omitted")
        yield MoeCase(dtype, 4096, SMALL, "one_expert")
    for tokens, dtype in product((1, 32, 64, 257), ("bf16", "fp16")):
        yield MoeCase(dtype, tokens, REAL_WIDTH, "omitted", 512, True)
    yield MoeCase("fp32", 32, (16, 8, 2048, 256), "spread", 256, True)
    for sizes in (TP1, TP2):
        yield MoeCase("bf16", 32, sizes, "spread", sizes[3], True)
    yield MoeCase("bf16", 1, TP2, "spread")


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    E, _k, D, inner = case.sizes
    x = normal(rng, (case.tokens, D), dtype)
    if case.nonfinite and case.tokens:
        x[case.tokens // 2, 5] = np.nan
    ids, weights = _make_routes(rng, case)
    used = np.unique(ids[ids >= 0])
    w13 = _make_experts(rng, used, (E, 2 * inner, D), dtype)
    w2 = _make_experts(rng, used, (E, D, inner), dtype)
    shared = _make_shared(rng, case, dtype)
    y = reference.fused_moe(x, w13, w2, ids, weights, **shared, routed_scale=case.routed_scale)

    def verify(values, notes):
        close("y", values["y"], y, COMPOUND_BOUNDS[dtype.name])

    layout = LAYOUTS[case.layout]
    experts = rows(3) if case.layout == "gapped" else DENSE
    arguments = {
        "x": Operand(x, layout(2)),
        "w13": Operand(w13, experts),
        "w2": Operand(w2, experts),
        "ids": Operand(ids.astype(INDEX_TYPES[case.index])),
        "weights": Operand(weights),
        **{name: None if array is None else Operand(array) for name, array in shared.items()},
        "routed_scale": case.routed_scale,
        "weight_layout": "dense",
    }
    outputs = {"y": Result(x.shape, dtype, layout=rows(2) if case.layout == "rows" else DENSE)}
    return Problem(OPERATOR, arguments, outputs, verify)


def _make_routes(rng, case):
    E, k, _, _ = case.sizes
    ids = rng.random((case.tokens, E)).argsort(-1)[:, :k].astype(np.int32)
    if case.routing == "omitted":
        ids[rng.random(ids.shape) < 0.4] = -1
        ids[1::4] = -1
    elif case.routing == "one_expert":
        ids[...] = -1
        ids[:, k - 1] = E - 1
    elif case.routing == "same_expert_k_times":
        ids[...] = E // 2
    elif case.routing == "none":
        ids[...] = -1
    elif case.routing == "two_experts":
        ids[...] = np.where(rng.random(ids.shape) < 0.5, 0, E - 1)
    weights = rng.dirichlet(np.ones(k), case.tokens).astype(np.float32).reshape(ids.shape)
    weights[ids < 0] = np.nan
    return ids, weights


def _make_experts(rng, used, shape, dtype):
    experts = np.full(shape, np.nan, dtype)
    for expert in used:
        experts[expert] = normal(rng, shape[1:], dtype, shape[2] ** -0.5)
    return experts


def _make_shared(rng, case, dtype):
    _, _, D, _ = case.sizes
    if not case.shared:
        return {"shared_w13": None, "shared_w2": None, "shared_gate": None}
    return {
        "shared_w13": normal(rng, (2 * case.shared, D), dtype, D**-0.5),
        "shared_w2": normal(rng, (D, case.shared), dtype, case.shared**-0.5),
        "shared_gate": normal(rng, (D,), dtype, D**-0.5) if case.gate else None,
    }


def test_fused_moe(check):
    check(build)
