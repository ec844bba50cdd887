"""The C++ program that times calls works on a driver that does nothing, as docs/benchmarks says; no time is asserted."""

import json
import subprocess

import pytest
from clover_ops import _core

from .conftest import ROOT, child_environment

pytestmark = pytest.mark.smoke


def test_own_share_of_a_call(compiler, nvidia_plugin, tmp_path):
    idle = compiler(
        "idle/libcuda.so.1", "standin/cuda.cpp", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", "-DIDLE"
    ).parent
    package = _core.package_dir()
    options = [f"-I{package / 'include'}", f"-L{package / 'lib'}", "-lclover_ops", f"-Wl,-rpath,{package / 'lib'}"]
    program = compiler("host_cost", ROOT / "tests" / "gpu" / "native" / "host_cost.cpp", *options)

    command = [program, "cuda", tmp_path / "host-cost.json"]
    environment = child_environment(idle, STANDIN_NAME="NVIDIA H200")
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    times = json.loads((tmp_path / "host-cost.json").read_text(encoding="utf-8"))
    assert len(times) == len(result.stdout.splitlines()) == 5
    assert all(us > 0 for us in times.values())
