"""What `doctor` looks at. Standard library only, and nothing here imports what it asks about."""

from __future__ import annotations

import ast
import difflib
import os
import platform
import re
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

VARIABLES = (
    "CLOVER_OPS_BACKENDS",
    "CLOVER_OPS_CACHE_DIR",
    "CLOVER_OPS_CPU_ISA",
    "CLOVER_OPS_DEBUG",
    "CLOVER_OPS_JIT",
    "CLOVER_OPS_PLUGIN_PATH",
    "CLOVER_OPS_PYTHON",
    "CLOVER_OPS_TRACE",
)
_OTHER_VARIABLES = (
    "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "DTK_ROOT", "ROCM_PATH", "LD_LIBRARY_PATH",
)  # fmt: skip
_CPU_FLAGS = {
    "x86_64": (
        "sse4_2", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16", "amx_tile",
        "amx_bf16", "amx_int8",
    ),
    "aarch64": ("asimd", "asimdhp", "bf16", "i8mm", "sve", "sve2"),
}  # fmt: skip


def platform_facts() -> dict[str, Any]:
    """Interpreter and operating system."""
    from clover_ops import __version__

    libc, libc_version = platform.libc_ver()
    return {
        "clover_ops": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libc": f"{libc} {libc_version}".strip() or "unknown",
    }


def library() -> dict[str, Any]:
    """Where the native library is, or should be."""
    from clover_ops import _core

    path = Path(_core.package_dir()) / "lib" / "libclover_ops.so"
    return {"path": str(path), "exists": path.is_file()}


def packages() -> dict[str, dict[str, Any]]:
    """The packages that work with clover-ops, without importing one of them."""
    facts = {
        name: _package(name, module)
        for name, module in (
            ("apache-tvm-ffi", "tvm_ffi"),
            ("numpy", "numpy"),
            ("ml_dtypes", "ml_dtypes"),
            ("torch", "torch"),
            ("triton", "triton"),
        )
    }
    if facts["torch"]["found"]:
        facts["torch"].update(_torch_build())
    return facts


def _package(distribution: str, module: str) -> dict[str, Any]:
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        version = None
    spec = find_spec(module)
    return {"version": version, "found": spec is not None, "path": spec.origin if spec else None}


def _torch_build() -> dict[str, Any]:
    """What torch was built for, from the constants in its version.py: importing torch takes seconds."""
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return {}
    source = (Path(next(iter(spec.submodule_search_locations))) / "version.py").read_text(encoding="utf-8")
    facts = {}
    for node in ast.parse(source).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            facts[target.id] = value.value
    return {"build": facts.get("__version__"), "cuda": facts.get("cuda"), "hip": facts.get("hip")}


def cpu() -> dict[str, Any]:
    """Model, cores, and the instruction sets that kernels choose by."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    fields = dict(re.findall(r"^(\S[^\t:]*)\s*:\s*(.*)$", text, re.MULTILINE))
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "model": fields.get("model name") or platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "usable_cores": affinity,
        "features": {flag: flag in flags for flag in _CPU_FLAGS.get(platform.machine(), ())},
    }


def devices() -> dict[str, Any]:
    """What the operating system shows of accelerators, whether or not a plugin can use them."""
    nvidia = sorted(path.name for path in Path("/dev").glob("nvidia[0-9]*"))
    return {
        "nvidia": {"nodes": nvidia, "driver": Path("/proc/driver/nvidia/version").exists()},
        "hip": {
            "nodes": sorted(path.name for path in Path("/dev/dri").glob("renderD*")),
            "driver": Path("/dev/kfd").exists(),
        },
    }


def cache() -> dict[str, Any]:
    """Where compiled kernels are kept, and whether they can be."""
    from clover_ops.jit.cache import directory

    path, source = directory()
    reason = _why_not_writable(path)
    return {"path": str(path), "source": source, "writable": not reason, "reason": reason}


def jit() -> dict[str, Any]:
    """What the JIT may do, which Triton it has or why none, and how many kernels are ready."""
    from clover_ops.errors import InvalidArgument
    from clover_ops.jit import artifact, cache, kernels, mode, toolchain
    from clover_ops.jit.errors import ToolchainError

    facts: dict[str, Any] = {"mode": None, "mode_error": None, "triton": None, "triton_error": None}
    try:
        facts["mode"] = mode.mode()
    except InvalidArgument as error:
        facts["mode_error"] = str(error)
    try:
        facts["triton"] = toolchain.toolchain().version
    except ToolchainError as error:
        facts["triton_error"] = str(error)
    folder = cache.directory()[0].absolute() / "jit"
    reason = cache.why_unsafe(folder) if folder.exists() else ""
    places = kernels.folders()
    return {
        **facts,
        "cache": str(folder),
        "cache_error": reason or None,
        "cached": len(list(folder.glob(f"*{artifact.SUFFIX}"))) if not reason else 0,
        "kernels": [str(place) for place in places],
        "bundled": sum(len(list((place.parent / "bundle").glob(f"*{artifact.SUFFIX}"))) for place in places),
    }


def _why_not_writable(path: Path) -> str:
    """Empty if files can be made there, or in the place where it would be made. Leaves nothing behind."""
    from clover_ops.jit.cache import why_unsafe

    place = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    where = "" if place == path.absolute() else f"{place}: "
    if not place.is_dir():
        return f"{where}not a directory"
    if not where and (reason := why_unsafe(place)):
        return reason
    try:
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return f"{where}{error.strerror or error}"


def environment() -> dict[str, str]:
    """Variables that change what clover-ops does, as seen here."""
    names = {name for name in os.environ if name.startswith("CLOVER_OPS_")} | set(_OTHER_VARIABLES)
    return {name: os.environ[name] for name in sorted(names) if name in os.environ}


def unknown_variables() -> list[str]:
    """A line for each CLOVER_OPS_ variable that nothing reads."""
    lines = []
    for name in sorted(os.environ):
        if name.startswith("CLOVER_OPS_") and name not in VARIABLES:
            near = difflib.get_close_matches(name, VARIABLES, n=1)
            lines.append(f"nothing reads {name}" + (f"; did you mean {near[0]}?" if near else ""))
    return lines
