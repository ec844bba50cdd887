"""Compiles a request with Triton, with no device. Runs in a process of its own (`worker`): LLVM may end a process, and
what steers the compiler is the process's environment."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clover_ops.errors import CompileError

from . import artifact
from .errors import ToolchainError
from .kernels import Kernel
from .request import Request, Target, Value
from .toolchain import Toolchain

_PACKAGE = "clover_kernels"  # kernels are loaded under one name wherever they lie: names get into binaries
# Settings of Triton that would change a binary behind its identity do not reach the compiler.
_KEPT = re.compile(
    r"PATH|HOME|USER|LANG|LC_.*|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|LD_PRELOAD|PYTHON.*|VIRTUAL_ENV|CLOVER_OPS_.*|"
    r"(DTK|ROCM|HIP|HSA|HYHAL|CUDA)_(ROOT|PATH|HOME)|[AT]SAN_OPTIONS"
)
# What the loader's launch cannot do.
_NOT_LAUNCHED = {"num_ctas": 1, "launch_cooperative_grid": False, "launch_pdl": False}
# What the request's target settles, what the launch cannot do, and files and passes that no identity would tell apart.
_RESERVED = {
    "arch", "warp_size", "debug", "backend_name", "extern_libs", "ir_override", "instrumentation_mode", *_NOT_LAUNCHED,
}  # fmt: skip
# Bytes that one block may have, after opting in. Every other HIP device has 64 KiB.
_SHARED_LIMITS = {
    "80": 166912,
    "86": 101376,
    "89": 101376,
    "90": 232448,
    "100": 232448,
    "120": 101376,
    "gfx950": 163840,
}
_UNKNOWN_TARGET = re.compile(
    r"unsupported target|is not a recognized processor|is not defined for option 'gpu-name'|[Uu]nsupported gpu architecture|"
    r"unknown target CPU|not a valid.*(?:gpu|target|cpu)"
)


def environment(outer: dict[str, str], scratch: str) -> dict[str, str]:
    """What the compiler's process gets."""
    kept = {name: value for name, value in outer.items() if _KEPT.fullmatch(name)}
    # Line information would put the sources' place into the binary.
    return {**kept, "TRITON_CACHE_DIR": scratch, "TRITON_DISABLE_LINE_INFO": "1", "PYTHONHASHSEED": "0"}


def compile_request(request: Request, kernel: Kernel, tools: Toolchain) -> bytes:
    """The artifact's bytes. Raises CompileError with what the compiler said."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    target = request.target
    gpu = GPUTarget(target.backend, int(target.arch) if target.backend == "cuda" else target.arch, target.warp_size)
    function = _function(kernel)
    signature, constants, attributes = _source(request, function.arg_names, triton.language)
    source = ASTSource(function, signature, constants, attributes)
    with _native_stderr() as said:
        try:
            options = _options(request, _backend(gpu), target)
            compiled = triton.compile(source, target=gpu, options=options)
        except CompileError:
            raise
        except Exception as error:
            _refuse_unknown_target(target, f"{said()}\n{error}", tools)
            raise CompileError(_explain(request, error, said())) from None
        _refuse_unknown_target(target, said(), tools)
    return artifact.dump(_artifact(request, tools, compiled.metadata._asdict(), compiled.asm))


def _function(kernel: Kernel) -> Any:
    """The kernel's function, its module loaded by path as a member of one package."""
    package = sys.modules.get(_PACKAGE)
    if package is None or package.__path__ != [str(kernel.folder)]:
        for name in [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]:
            del sys.modules[name]
        package = types.ModuleType(_PACKAGE)
        package.__path__ = [str(kernel.folder)]
        sys.modules[_PACKAGE] = package
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(f"{_PACKAGE}.{kernel.module}")
    except Exception as error:
        raise CompileError(f"{kernel.folder / kernel.module}.py cannot be imported: {error}") from None
    return getattr(module, kernel.function)


def _source(request: Request, names: list[str], language: Any) -> tuple[dict, dict, dict]:
    """Signature, constants and attributes as Triton wants them."""
    arguments = {argument.name: argument for argument in request.arguments}
    values = dict(request.constexprs)
    if sorted(names) != sorted([*arguments, *values]):
        raise CompileError(
            f"kernel {request.kernel} has the parameters {', '.join(names)}; the request gives "
            f"{', '.join([*arguments, *values])}"
        )
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for at, name in enumerate(names):
        argument = arguments.get(name)
        if argument is None or not argument.passed:
            signature[name] = "constexpr"
            constants[name] = 1 if argument is not None else _constant(values[name], language)
            continue
        signature[name] = argument.type
        if argument.specialisation == "16":
            attributes[(at,)] = [["tt.divisibility", 16]]
    return signature, constants, attributes


_DTYPE_NAMES = {
    "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64", "i1": "int1", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip


def _constant(value: Value, language: Any) -> Any:
    return getattr(language, _DTYPE_NAMES[value]) if isinstance(value, str) else value


def _backend(gpu: Any) -> Any:
    from triton.compiler import make_backend

    try:
        return make_backend(gpu)
    except Exception as error:
        raise ToolchainError(f"this Triton compiles nothing for {gpu.backend}: {error}") from None


def _options(request: Request, backend: Any, target: Target) -> dict[str, Any]:
    """Backend options. Triton overlooks one that it does not know, so a misspelt one is refused here."""
    known = set(vars(backend.parse_options({"enable_fp_fusion": True})))
    options: dict[str, Any] = {"enable_fp_fusion": True}
    for key, text in request.options:
        if key not in known or key in _RESERVED:
            raise CompileError(
                f"kernel {request.kernel}: {target.backend} has no option {key!r} that could be set here"
            )
        options[key] = _option(text)
    return {**options, "num_warps": request.num_warps, "num_stages": request.num_stages}


def _option(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _artifact(request: Request, tools: Toolchain, metadata: dict[str, Any], asm: dict[str, Any]) -> artifact.Artifact:
    target = request.target
    size = int(metadata.get("warp_size", target.warp_size))
    if size != target.warp_size:
        raise CompileError(f"{target.text} was asked for; Triton compiled for warps of {size}")
    for key, only in _NOT_LAUNCHED.items():
        if metadata.get(key, only) != only:
            raise CompileError(f"kernel {request.kernel}: {key} = {metadata[key]!r} is not supported, only {only!r}")
    if metadata.get("tensordesc_meta"):
        raise CompileError(f"kernel {request.kernel}: tensor descriptors as arguments are not supported")
    expected = len(request.passed_types) + len(artifact.EXTRA_ARGUMENTS)
    found = _parameters(asm, metadata["name"])
    if found != expected:
        raise CompileError(
            f"kernel {request.kernel}: the binary takes {found} arguments, {expected} were expected "
            f"({' '.join((*request.passed_types, *artifact.EXTRA_ARGUMENTS))}): Triton {tools.version} passes others"
        )
    limit = _SHARED_LIMITS.get(target.arch, 65536 if target.backend == "hip" else None)
    if limit is not None and metadata["shared"] > limit:
        raise CompileError(
            f"kernel {request.kernel} needs {metadata['shared']} bytes of shared memory; {target.text} gives a block {limit}"
        )
    header = {
        "architecture": target.arch,
        "arguments": " ".join(request.passed_types),
        "binary_kind": target.binary_kind,
        "extra_arguments": " ".join(artifact.EXTRA_ARGUMENTS),
        "features": target.features,
        "global_scratch_alignment": str(metadata.get("global_scratch_align", 1)),
        "global_scratch_bytes": str(metadata.get("global_scratch_size", 0)),
        "identity": request.identity(tools.version, tools.backend),
        "kernel": request.kernel,
        "num_stages": str(request.num_stages),
        "num_warps": str(metadata["num_warps"]),
        "profile_scratch_alignment": str(metadata.get("profile_scratch_align", 1)),
        "profile_scratch_bytes": str(metadata.get("profile_scratch_size", 0)),
        "request": request.digest(),
        "shared_bytes": str(metadata["shared"]),
        "source": request.source,
        "symbol": str(metadata["name"]),
        "target": target.text,
        "triton": tools.version,
        "warp_size": str(size),
    }
    return artifact.build(header, bytes(asm[target.binary_kind]))


def _parameters(asm: dict[str, Any], symbol: str) -> int:
    """How many arguments the compiled kernel takes, read from its assembly."""
    if "ptx" in asm:
        entry = re.search(rf"\.entry\s+{re.escape(symbol)}\s*\((.*?)\)", asm["ptx"], re.DOTALL)
        return len(re.findall(r"\.param\b", entry.group(1))) if entry else -1
    kinds = re.findall(r"\.value_kind:\s*(\w+)", asm["amdgcn"])
    return sum(not kind.startswith("hidden") for kind in kinds)


def _refuse_unknown_target(target: Target, said: str, tools: Toolchain) -> None:
    """Some versions fail on an architecture that they do not know, others warn and compile for a generic one."""
    if not _UNKNOWN_TARGET.search(said):
        return
    if target.backend == "hip":
        what = "The Triton of DTK knows the DCUs: install it in place of upstream's, of which a newer one may, too"
    else:
        what = "A newer one may"
    raise ToolchainError(f"Triton {tools.version} does not know {target.backend}:{target.arch}. {what}.")


def _reason(error: BaseException) -> str:
    """Where, and why, on one line. Triton puts the place first, the source next and the reason last, if need be in what
    caused the error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^")]
    place = f"{lines[0].rstrip(':')}: " if len(lines) > 1 and lines[0].startswith("at ") else ""
    if error.__cause__ is not None:
        return place + _reason(error.__cause__)
    return place + (lines[-1] if lines else type(error).__name__)


def _explain(request: Request, error: Exception, said: str) -> str:
    lines = [line for line in said.splitlines() if "error:" in line and "Failures have been detected" not in line]
    text = "; ".join([f"{type(error).__name__}: {_reason(error)}", *lines[:3]])
    return f"kernel {request.kernel} does not compile for {request.target.text}: {text}"


@contextlib.contextmanager
def _native_stderr() -> Iterator[Any]:
    """Collects what is printed to file descriptor 2: LLVM and MLIR say there what the exception leaves out."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)

        def said() -> str:
            sys.stderr.flush()
            size = os.fstat(file.fileno()).st_size
            return os.pread(file.fileno(), size, 0).decode(errors="replace")

        try:
            yield said
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


def kernel_of(request: Request, folder: Path | None) -> Kernel:
    """The kernel that a request is for, from the folder given or an installed plugin; its sources must be the same."""
    from . import kernels

    return kernels.find(request.kernel, request.source, folder)
