"""The mixture of experts' Triton kernels, with the configurations of both families that kernels.toml lists."""

from itertools import cycle, product
from pathlib import Path

import numpy as np
import pytest
from clover_ops.jit import kernels
from ops import test_fused_moe as moe
from ops.arena import Operand, Stage, bits, poison

from . import interpreter, launch

FOLDER = Path(__file__).resolve().parents[2] / "common" / "kernels" / "triton"
TABLE = {kernel.name: dict(kernel.configs) for kernel in kernels.read(FOLDER)}
BACKENDS = ("cuda", "hip")

FEW = (5, 2, 48, 24)
"""E, k, D, I: more columns and keys than one tile of any configuration, with remainders."""
TILES = (4, 3, 160, 144)


@pytest.fixture(scope="module")
def module():
    with interpreter.loaded(FOLDER, "moe") as module:
        yield module


def plans(backend):
    """Configurations of moe_up and moe_down, one to one; warps and stages make no difference to the interpreter."""
    ups, downs = TABLE["moe_up"][backend], TABLE["moe_down"][backend]
    return [(backend, up, down) for up, down in zip(ups, downs, strict=True)]


PLANS = [plan for backend in BACKENDS for plan in plans(backend)]
FIRSTS = [plans(backend)[0] for backend in BACKENDS]


def cases():
    Case = moe.MoeCase
    dtypes, options = cycle(("bf16", "fp16", "fp32")), cycle(((0, False), (24, False), (40, True)))
    layouts, scales = cycle(("dense", "rows", "gapped", "offset")), cycle((1.0, 2.5))
    for routing, tokens, plan in product(moe.ROUTING, (1, 7, 33), FIRSTS):
        yield (
            Case(next(dtypes), tokens, FEW, routing, *next(options), next(scales), next(layouts), smoke=tokens < 33),
            plan,
        )
    for plan in FIRSTS:
        yield Case("bf16", 0, FEW, shared=24, smoke=True), plan
        yield Case("bf16", 5, FEW, nonfinite=True, smoke=True), plan
    for plan in PLANS:
        yield Case("bf16", 9, TILES, "omitted", 100, True, 0.5, smoke=plan in FIRSTS), plan
        for dtype, tokens in product(("bf16", "fp16", "fp32"), (1, 70)):
            yield Case(dtype, tokens, TILES, "spread"), plan
            yield Case(dtype, tokens, moe.SMALL, "two_experts", 32, True), plan


def parameters():
    found = {}
    for case, plan in cases():
        name = f"{plan[0]}-{'-'.join(f'{k}{v}' for k, v in plan[1].constexprs if k in ('BM', 'BN'))}-{case}"
        marks = [pytest.mark.smoke] if case.smoke else []
        found.setdefault(name, pytest.param(case, plan, id=name, marks=marks))
    return list(found.values())


def run(module, problem, plan):
    """One launch of everything on fresh memory; y, after a look at what may not have been written."""
    backend, up, down = plan
    tensors = Stage(problem.operands, "cpu")
    result = problem.outputs["y"]
    array = np.empty(result.shape, result.dtype)
    bits(array)[...] = poison(result.dtype)
    outputs = Stage({"y": Operand(array, result.layout, mutable=True)}, "cpu")
    named = {
        name: None if problem.arguments[name] is None else tensors.tensor(name)
        for name in ("x", "w13", "w2", "ids", "weights", "shared_w13", "shared_w2", "shared_gate")
    }
    experts = launch.Experts(**named, scale=problem.arguments["routed_scale"], y=outputs.tensor("y"))
    others = {name: TABLE[name][backend][0] for name in ("moe_sort", "moe_sum")}
    launch.fused_moe(module, up, down, others, backend, experts)
    tensors.check_untouched()
    outputs.check_untouched()
    return outputs.values("y")


@pytest.mark.parametrize(("case", "plan"), parameters())
def test_fused_moe(module, case, plan):
    problem = moe.build(case)
    y = run(module, problem, plan)
    problem.verify({"y": y}, None)


@pytest.mark.smoke
@pytest.mark.parametrize("plan", FIRSTS, ids=BACKENDS)
def test_a_repeat_gives_the_same_bits(module, plan):
    problem = moe.build(moe.MoeCase("bf16", 19, FEW, "omitted", 24, True))
    first, second = (bits(run(module, problem, plan)).copy() for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.smoke
@pytest.mark.parametrize("plan", FIRSTS, ids=BACKENDS)
def test_ids_of_no_expert_are_skipped(module, plan):
    problem = moe.build(moe.MoeCase("bf16", 6, FEW, "spread"))
    ids = problem.operands["ids"].array
    expected = run(module, problem, plan)
    assert ids.shape == (6, 2)
    ids[3] = -1
    without = run(module, problem, plan)
    ids[3] = (FEW[0], -9)
    bad = run(module, problem, plan)
    assert np.array_equal(bits(bad), bits(without)) and not bits(bad[3]).any()
    assert np.array_equal(bits(bad[:3]), bits(expected[:3]))
