"""Queries about what is installed and what works."""

from __future__ import annotations

import difflib
import json
import sys
from typing import Any, NamedTuple

from . import _runtime
from ._generated.table import OPERATORS
from .errors import InvalidArgument

_DEVICE_TYPES = {"cpu": 1, "cuda": 2, "rocm": 10, "hip": 10}


class Provider(NamedTuple):
    backend: str
    device_type: str
    slot: int
    name: str


class Backend(NamedTuple):
    name: str
    active: bool
    reason: str
    device_type: str
    devices: int
    version: str


def describe() -> dict[str, Any]:
    """The native registry: plugins with their status and reason, operators with the providers of active backends."""
    return json.loads(str(_runtime.ffi.describe()))


def backends() -> list[Backend]:
    """Every plugin that was found, active or not."""
    return [
        Backend(p["name"], p["status"] == "active", p["reason"], p["device"], p["devices"], p["version"])
        for p in describe()["plugins"]
    ]


def providers(op: str) -> list[Provider]:
    """The providers of an operator on active backends, in the order in which they are asked."""
    _number(op)
    entry = next(entry for entry in describe()["operators"] if entry["name"] == op)
    return [Provider(p["backend"], p["device"], p["slot"], p["name"]) for p in entry["providers"]]


def provides(op: str, backend: str) -> bool:
    """Whether the backend's manifest lists the operator; InvalidArgument for a backend that is not installed."""
    return bool(_runtime.ffi.provides(_number(op), backend))


def supports(op: str, device: Any) -> bool:
    """Whether an active provider exists for the operator on the device: "cpu", "cuda:1", "rocm", or a torch.device."""
    return bool(_runtime.ffi.supports(_number(op), *_device(device)))


def warmup(device: Any) -> None:
    """Loads all prebuilt kernels for a device, so that calls on it can be captured in a graph."""
    _runtime.ffi.warmup(*_device(device))


def _number(op: str) -> int:
    for operator in OPERATORS:
        if operator.name == op:
            return operator.number
    near = difflib.get_close_matches(str(op), [operator.name for operator in OPERATORS], 1)
    raise InvalidArgument(f"no operator is called {op!r}" + (f"; did you mean {near[0]}?" if near else ""))


def _device(device: Any) -> tuple[int, int]:
    kind, _, number = str(device).partition(":")
    if kind == "cuda" and _torch_is_hip():
        kind = "rocm"
    sound = not number or (number.isascii() and number.isdigit() and len(number) < 10)
    if kind not in _DEVICE_TYPES or not sound:
        raise InvalidArgument(
            f"device must be one of {', '.join(_DEVICE_TYPES)}, optionally with `:index`, got {device!r}"
        )
    return _DEVICE_TYPES[kind], int(number or 0)


def _torch_is_hip() -> bool:
    """A torch for HIP calls its devices cuda."""
    torch = sys.modules.get("torch")
    return torch is not None and getattr(torch.version, "hip", None) is not None
