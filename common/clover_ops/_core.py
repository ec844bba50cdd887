"""Loads the native libraries, once, when something first needs them; a failure is kept and told, never swallowed."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import Any

from . import _discovery
from .errors import KINDS, AbiMismatch

_lock = threading.Lock()
_error: str | None = None
_binding: Any = None  # the tvm_ffi module once the binding is loaded


def package_dir() -> Path:
    """The folder of the installed package, which holds lib/ and include/. In an editable install the two differ."""
    import clover_ops

    for folder in map(Path, clover_ops.__path__):
        if (folder / "lib" / "libclover_ops.so").is_file():
            return folder
    return Path(clover_ops.__path__[0])


def binding() -> Any:
    """The tvm_ffi module, with the operators registered; raises AbiMismatch when the native libraries cannot be loaded."""
    if _binding is None:
        with _lock:
            if _binding is None and _error is None:
                _load()
    if _error is not None:
        raise AbiMismatch(_error)
    return _binding


def library_error() -> str | None:
    """Why the native libraries cannot be loaded; None when they can."""
    try:
        binding()
    except AbiMismatch as error:
        return str(error)
    return None


def _load() -> None:
    global _binding, _error
    # Where torch lacks the exchange protocol, tvm_ffi would compile an extension on import, for half a minute.
    os.environ.setdefault("TVM_FFI_DISABLE_TORCH_C_DLPACK", "1")
    try:
        import tvm_ffi

        _discovery.rebuild_if_editable("clover_ops", sys.modules["clover_ops"].__spec__)
        library = package_dir() / "lib"
        core = ctypes.CDLL(str(library / "libclover_ops.so"))
        # Kernels are compiled by the Python that runs, whose packages are at hand, not by whichever one PATH has.
        core.clover_set_python(os.fsencode(sys.executable or ""))
        ctypes.CDLL(str(library / "libclover_ops_ffi.so"))
        for kind, error in KINDS.items():
            tvm_ffi.register_error(kind, error)
        _load_plugins(tvm_ffi)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        _error = f"the native library of clover-ops cannot be loaded: {error}"
        return
    _binding = tvm_ffi


def _load_plugins(tvm_ffi: Any) -> None:
    """Plugins beside the core are found by the core; those installed elsewhere are known to Python alone."""
    found = _discovery.find_manifests()  # which brings editable installs up to date: before anything is opened
    tvm_ffi.get_global_func("clover_ops.discover_plugins")()
    load = tvm_ffi.get_global_func("clover_ops.load_plugin")
    for plugin in found:
        if plugin.manifest is not None:
            try:
                load(str(plugin.manifest))
            except Exception:
                continue
