"""The Triton driver that times kernels: the one that is active, which stays what it was."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clover_ops.errors import CompileError, DriverError

from .errors import ToolchainError
from .request import Target
from .toolchain import toolchain

_LIBRARIES = {
    "cuda": (r"libcuda\.so[.0-9]*", ("libcuda.so.1",), "cuLaunchKernel"),
    "hip": (r"lib(?:amdhip64|galaxyhip)\.so[.0-9]*", ("libgalaxyhip.so", "libamdhip64.so"), "hipModuleLaunchKernel"),
}


def active(target: Target) -> Any:
    """The active driver, or, where nobody has chosen one yet, the only candidate for the target.

    Triton's own choice refuses to be made between two candidates, and once made it stays for the whole process; so it is
    read, and neither made nor changed.
    """
    toolchain()  # tells what to install where Triton is missing
    try:
        from triton.runtime.driver import driver as config
    except Exception as error:
        raise ToolchainError(f"Triton cannot be imported: {type(error).__name__}: {error}") from error

    chosen = config._active or config._default
    if chosen is not None:
        _check(chosen, target)
        return chosen
    present = _candidates()
    fitting = [backend for backend in present.values() if _serves(backend, target)]
    if not fitting:
        names = ", ".join(present) or "none"
        raise CompileError(f"kernels for {target.text} cannot be timed: Triton's active drivers are: {names}")
    driver = fitting[0].driver()
    _check(driver, target)
    return driver


def _candidates() -> dict[str, Any]:
    from triton.backends import backends

    return {name: backend for name, backend in backends.items() if backend.driver.is_active()}


def _serves(backend: Any, target: Target) -> bool:
    from triton.backends.compiler import GPUTarget

    arch = int(target.arch) if target.backend == "cuda" else target.arch
    return backend.compiler.supports_target(GPUTarget(target.backend, arch, target.warp_size))


def _check(driver: Any, target: Target) -> None:
    there = driver.get_current_target()
    found = (there.backend, str(there.arch).partition(":")[0], int(there.warp_size))
    if found != (target.backend, target.arch, target.warp_size):
        raise CompileError(
            f"kernels for {target.text} cannot be timed: Triton's active driver has {':'.join(map(str, found))}"
        )


class Launcher:
    """Launches a loaded kernel through the driver's library, the copy that is in the process."""

    def __init__(self, backend: str) -> None:
        pattern, names, symbol = _LIBRARIES[backend]
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        loaded = sorted(set(re.findall(rf"(/\S*/{pattern})$", maps, re.MULTILINE)))
        for name in (*loaded, *names):
            try:
                self._launch = getattr(ctypes.CDLL(name), symbol)
                break
            except (OSError, AttributeError):
                continue
        else:
            raise DriverError(f"no library with {symbol} can be loaded; tried {', '.join((*loaded, *names))}")
        number, pointer = ctypes.c_uint, ctypes.c_void_p
        self._launch.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
        self._launch.restype = ctypes.c_int

    def __call__(
        self, function: int, grid: Sequence[int], block: int, shared: int, stream: int, values: list[Any]
    ) -> None:
        """`values` are ctypes objects, in order."""
        places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        code = self._launch(function, *grid, block, 1, 1, shared, stream, places, None)
        if code:
            raise DriverError(f"the launch failed with the driver's error {code}")
