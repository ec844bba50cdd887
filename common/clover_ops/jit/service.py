"""From a request to an artifact: bundle, user cache, compile. What C++ calls when it lacks a kernel."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

from clover_ops.errors import CompileError

from . import artifact, kernels, mode, worker
from .artifact import SUFFIX
from .cache import Cache
from .errors import ArtifactError
from .kernels import Kernel
from .request import Request, parse
from .toolchain import Toolchain, toolchain

Compile = Callable[[Request, Kernel, Toolchain], bytes]
_caches: dict[Path, Cache] = {}
_lock = threading.Lock()


def user_cache() -> Cache:
    """One per place and process: what could not be written is remembered there."""
    from . import cache

    place = cache.directory()[0].absolute()
    with _lock:
        if place not in _caches:
            _caches[place] = Cache(place)
        return _caches[place]


def lasting_cache() -> Cache:
    """The user's cache, for who compiles to have kernels there; raises CompileError where it keeps nothing."""
    cache = user_cache()
    if cache.reason:
        raise CompileError(f"nothing would be kept, so nothing is compiled: the cache {cache.reason}")
    return cache


def get(text: str, folder: Path | None = None) -> bytes:
    """The artifact for a request's text. `folder` holds the kernels; left out, installed plugins do."""
    request = parse(text)
    allowed = mode.mode()
    if allowed == "off":
        raise CompileError(f"kernel {request.kernel}: CLOVER_OPS_JIT=off: no Triton kernel is loaded")
    try:
        if (data := bundled(request, folder)) is not None:
            return data
    except ArtifactError as error:
        if allowed == "bundle":
            raise
        print(f"clover-ops: {error}; the kernel is compiled instead", file=sys.stderr, flush=True)
    if allowed == "bundle":
        raise CompileError(
            f"kernel {request.kernel} for {request.target.text} is not in the bundle, and CLOVER_OPS_JIT=bundle forbids to "
            "compile it"
        )
    return obtain(request, kernels.find(request.kernel, request.source, folder), user_cache())


def bundled(request: Request, folder: Path | None = None) -> bytes | None:
    """The artifact that lies in the bundle beside the kernels. One that is damaged or foreign raises ArtifactError."""
    for place in kernels.folders(folder):
        path = place.parent / "bundle" / f"{request.digest()}{SUFFIX}"
        if path.is_file():
            data = path.read_bytes()
            artifact.check_request(artifact.load(data, str(path)), request, str(path))
            return data
    return None


def obtain(request: Request, kernel: Kernel, cache: Cache, compile_with: Compile | None = None) -> bytes:
    """From the cache, or compiled and put there; one process compiles, the others wait for it."""
    tools = toolchain()
    identity = request.identity(tools.version, tools.backend)
    if (data := cache.load(identity)) is not None:
        return data
    with cache.locked(identity):
        if (data := cache.load(identity)) is not None:
            return data
        data = (compile_with or _compile)(request, kernel, tools)
        _verify(data, request)
        cache.store(identity, data)
    return data


def _compile(request: Request, kernel: Kernel, tools: Toolchain) -> bytes:
    with worker.Worker() as process:
        return process.compile(request, kernel, tools)


def _verify(data: bytes, request: Request) -> None:
    try:
        artifact.check_request(artifact.load(data, "what was compiled"), request, "what was compiled")
    except ArtifactError as error:
        raise CompileError(str(error)) from None
