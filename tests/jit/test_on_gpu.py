"""On a GPU: compiled kernels launched from their artifacts, and tuned. Skipped with the reason where there is none."""

from __future__ import annotations

import ctypes

import pytest
from clover_ops.jit import artifact, autotune, driver, kernels, request, service

from .conftest import KERNELS, needs_triton

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = [needs_triton, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")]


def test_a_launch_from_the_artifact_computes():
    target = autotune.current_target()
    kernel = kernels.find("vector_add", given=KERNELS)
    n = 12345
    x, y = (torch.randn(n, device="cuda").to(torch.bfloat16) for _ in range(2))
    for config in kernel.candidates(target):
        asked = kernel.request(target, config, {}, "bf16", {"stride": "1"})
        found = artifact.load(service.get(asked.text(), KERNELS))
        chosen = driver.active(target)
        shared = found.number("shared_bytes")
        _, function, *_ = chosen.utils.load_binary(found["symbol"], found.binary, shared, chosen.get_current_device())
        out = torch.zeros_like(x)
        values = [ctypes.c_void_p(t.data_ptr()) for t in (x, y, out)] + [
            ctypes.c_int32(n),
            ctypes.c_void_p(),
            ctypes.c_void_p(),
        ]
        grid = (-(-n // dict(asked.constexprs)["BLOCK"]), 1, 1)
        stream = chosen.get_current_stream(chosen.get_current_device())
        driver.Launcher(target.backend)(function, grid, found.block, shared, stream, values)
        torch.cuda.synchronize()
        assert torch.equal(out, x + y)


def test_tuning_leaves_the_callers_tensors_alone():
    target = autotune.current_target()
    n = 1 << 20
    x = torch.randn(n, device="cuda").to(torch.bfloat16)
    out = torch.full_like(x, 7)
    problem = autotune.Problem(
        kernels.find("vector_add", given=KERNELS), target, {"x": x, "y": x, "out": out, "n": n, "stride": 1}, {},
        lambda values: (-(-values["n"] // values["BLOCK"]), 1, 1), "bf16", {"stride": "1"},
    )  # fmt: skip
    result = autotune.autotune(problem)
    assert (out == 7).all() and not result.cached
    assert all(trial.microseconds > 0 for trial in result.trials)
    assert autotune.autotune(problem).cached


def test_capture_is_refused():
    target = autotune.current_target()
    x = torch.ones(64, device="cuda", dtype=torch.bfloat16)
    problem = autotune.Problem(
        kernels.find("vector_add", given=KERNELS), target, {"x": x, "y": x, "out": x, "n": 64, "stride": 1}, {},
        lambda values: (1, 1, 1), "bf16", {"stride": "1"},
    )  # fmt: skip
    driver.active(request.parse_target(f"{target.backend}:{target.arch}"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
        with pytest.raises(ValueError, match="captured"):
            autotune.autotune(problem)
