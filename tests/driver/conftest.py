"""Builds the stand-in drivers, and runs test bodies in processes of their own that find a stand-in as the driver."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


class Compiler:
    """Builds a C++ file of this folder once per session."""

    def __init__(self, folder):
        self.program = shutil.which("c++") or shutil.which("g++")
        self.folder = folder

    def __call__(self, output, source, *options):
        path = self.folder / output
        if not path.exists():
            if self.program is None:
                pytest.skip("there is no C++ compiler")
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(path.name + ".partial")
            command = [self.program, "-std=c++17", "-Wall", "-Wextra", "-O0", str(HERE / source), "-o", str(partial)]
            subprocess.run([*command, *options, "-pthread", "-ldl"], check=True)
            partial.rename(path)
        return path


def require_plugin(name):
    """Skips where the plugin is not installed: these tests are of installed wheels."""
    from clover_ops import _discovery

    if not any(found.name == name and found.manifest is not None for found in _discovery.find_manifests()):
        pytest.skip(f"clover-ops-{name} is not installed")


@pytest.fixture(scope="session")
def nvidia_plugin():
    require_plugin("nvidia")


@pytest.fixture(scope="session")
def hygon_plugin():
    require_plugin("hygon")


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    return Compiler(tmp_path_factory.mktemp("standin"))


@pytest.fixture(scope="session")
def hip_standin(compiler):
    """hip_standin(*macros) -> the folder that holds such a libamdhip64.so.5."""

    def build(*macros):
        options = ["-fPIC", "-shared", "-Wl,-soname,libamdhip64.so.5", *(f"-D{macro}" for macro in macros)]
        return compiler(f"amdhip-{'-'.join(macros) or 'plain'}/libamdhip64.so.5", "standin/hip.cpp", *options).parent

    return build


@pytest.fixture
def hidden(compiler):
    """LD_PRELOAD's value that hides this machine's HIP libraries."""
    return str(compiler("hidden/libhidden.so", "standin/hidden.cpp", "-fPIC", "-shared"))


@pytest.fixture(scope="session")
def cuda_standin(compiler):
    """cuda_standin(*macros) -> the folder that holds such a libcuda.so.1."""

    def build(*macros):
        options = ["-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", *(f"-D{macro}" for macro in macros)]
        return compiler(f"cuda-{'-'.join(macros) or 'plain'}/libcuda.so.1", "standin/cuda.cpp", *options).parent

    return build


def child_environment(library_folder, **variables):
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    kept["PYTHONPATH"] = str(HERE / "without_torch")
    if library_folder is not None:
        kept["LD_LIBRARY_PATH"] = str(library_folder)
    return {**kept, **variables}


def run_child(test_file, name, environment, arguments=()):
    """Runs the body of a test that `in_process` made; fails with what the child printed."""
    command = [sys.executable, str(HERE / "child.py"), str(test_file), name, *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if result.returncode != 0:
        pytest.fail(f"in a process of its own:\n{result.stdout}{result.stderr}", pytrace=False)
