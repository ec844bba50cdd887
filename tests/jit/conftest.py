"""The JIT's tests: kernels of their own, a cache of their own, and Triton where it is installed."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from clover_ops.jit import cache, kernels, prebuild, request, service, toolchain

KERNELS = Path(__file__).parent / "kernels"
HAS_TRITON = find_spec("triton") is not None
needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own cache directory, and no setting of the machine's."""
    for name in list(os.environ):
        if name.startswith(("CLOVER_OPS_", "TRITON_")):
            monkeypatch.delenv(name)
    place = tmp_path / "cache"
    monkeypatch.setenv("CLOVER_OPS_CACHE_DIR", str(place))
    monkeypatch.setattr(service, "_caches", {})
    monkeypatch.setattr(cache, "_warned", set())
    return place


@pytest.fixture
def folder() -> Path:
    return KERNELS


def jobs(target: str, kernel: str = "vector_add", folder: Path = KERNELS) -> list[prebuild.Job]:
    """What the test kernels' bundle holds of one kernel for a target."""
    return prebuild.plan([kernels.find(kernel, given=folder)], [request.parse_target(target)])


def identity(one: request.Request) -> str:
    tools = toolchain.toolchain()
    return one.identity(tools.version, tools.backend)


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]
