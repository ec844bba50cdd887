#!/usr/bin/env python3
"""Checks the SDK in DTK_ROOT against what clover-ops takes from it: hipcc and its architectures, the headers, the functions of
the driver library and of hiprtc, and Triton. Prints one line for each and exits with 1 if one is wrong."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "ci"))
from device_code import hip  # noqa: E402

ARCHITECTURES = ("gfx906", "gfx926", "gfx928", "gfx936")
HIPRTC = (
    "hiprtcVersion", "hiprtcCreateProgram", "hiprtcDestroyProgram", "hiprtcCompileProgram", "hiprtcGetProgramLogSize",
    "hiprtcGetProgramLog", "hiprtcGetCodeSize", "hiprtcGetCode",
)  # fmt: skip


def libraries(dtk: Path, *patterns: str) -> list[Path]:
    folders = [dtk / "hip" / "lib", dtk / "lib", dtk / "lib64"]
    return [path for folder in folders for pattern in patterns for path in sorted(folder.glob(pattern))]


def driver_functions() -> list[str]:
    """The HIP functions that clover/driver.h cannot do without."""
    text = (ROOT / "common/include/clover/driver.h").read_text(encoding="utf-8")
    return re.findall(r'CLOVER_DRIVER_SYMBOL\(\w+,\s*(?:"\w+"|nullptr),\s*"(hip\w+)",\s*true\)', text)


def lacks(library: Path, functions: list[str]) -> list[str]:
    loaded = ctypes.CDLL(str(library))
    return [name for name in functions if not hasattr(loaded, name)]


def check_library(dtk: Path, patterns: tuple[str, ...], functions: list[str]) -> str:
    """Empty when one of the libraries has all functions."""
    found = libraries(dtk, *patterns)
    if not found:
        return f"no {' or '.join(patterns)}"
    missing = lacks(found[0], functions)
    return f"{found[0]} lacks {', '.join(missing)}" if missing else ""


def check_headers(dtk: Path) -> str:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return "there is no C++ compiler to read them with"
    includes = [f"-I{folder}" for folder in (dtk / "include", dtk / "hip" / "include") if folder.is_dir()]
    command = [compiler, "-std=c++17", "-fsyntax-only", "-D__HIP_PLATFORM_AMD__", *includes]
    command += [f"-I{ROOT / 'common/include'}", str(ROOT / "tests/driver/native/hip_headers.cpp")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return "\n".join(line for line in result.stderr.splitlines() if "error" in line)


def check_compiler(toolchain: hip.Toolchain, architecture: str) -> str:
    from device_code.jobs import CompileError, Job

    with tempfile.TemporaryDirectory() as folder:
        job = Job("common/kernels/native/live_rows.cu", "native/live_rows", "hsaco", architecture)
        try:
            kernels = toolchain.compile(job, Path(folder) / "code", ROOT)
        except CompileError as error:
            return str(error)
    wrong = [kernel["name"] for kernel in kernels if kernel["warp_size"] != 64]
    return f"kernels without 64 lanes: {wrong}" if wrong else ""


def check_triton() -> str:
    code = "import triton; from triton.backends import backends; print(triton.__version__, *sorted(backends))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return "not installed in this Python; install DTK's wheel"
    version, *backends = result.stdout.split()
    return "" if {"amd", "hip"} & set(backends) else f"triton {version} has no HIP backend: {backends}"


def main() -> int:
    dtk = Path(os.environ["DTK_ROOT"])
    toolchain = hip.Toolchain()
    print(f"{toolchain.text} in {dtk}")
    results = {f"code for {name}": check_compiler(toolchain, name) for name in ARCHITECTURES}
    results["headers"] = check_headers(dtk)
    results["driver library"] = check_library(dtk, ("libgalaxyhip.so*", "libamdhip64.so*"), driver_functions())
    results["hiprtc"] = check_library(dtk, ("libhiprtc.so*", "libgalaxyhip.so*", "libamdhip64.so*"), list(HIPRTC))
    results["triton"] = check_triton()
    for name, problem in results.items():
        print(f"{name}: {problem or 'good'}")
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
