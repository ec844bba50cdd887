"""Clover's operators for CPU, NVIDIA GPUs and Hygon DCUs.

Importing this package loads nothing else: no native library, no torch, no NumPy. What is broken is told by the first call
that needs it and by `clover-ops doctor`.
"""

from __future__ import annotations

import importlib
import sys

from ._version import __version__
from .errors import (
    AbiMismatch,
    CloverError,
    CompileError,
    DriverError,
    InternalError,
    InvalidArgument,
    MissingWorkspace,
    Unsupported,
)

__all__ = [
    "AbiMismatch",
    "CloverError",
    "CompileError",
    "DriverError",
    "InternalError",
    "InvalidArgument",
    "MissingWorkspace",
    "Unsupported",
    "__version__",
]

_QUERIES = ("backends", "describe", "providers", "provides", "supports", "warmup")


def __getattr__(name: str):
    """Operators and queries load with their first use and stay as attributes; torch.ops.clover comes with them."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module("._api" if name in _QUERIES else "._generated.functions", __name__)
    if name not in _QUERIES and name not in module.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if "torch" in sys.modules:
        importlib.import_module(".torch", __name__)
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from ._generated import functions

    return sorted({*globals(), *__all__, *_QUERIES, *functions.__all__})


if "torch" in sys.modules:
    importlib.import_module(".torch", __name__)
