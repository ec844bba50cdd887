"""CLOVER_OPS_JIT: what the JIT may do."""

from __future__ import annotations

import os

from clover_ops.errors import InvalidArgument

VARIABLE = "CLOVER_OPS_JIT"
MODES = ("off", "bundle", "on")


def mode() -> str:
    """`off`: no Triton provider; `bundle`: what was compiled ahead of time; `on`, the default: compile what is missing."""
    value = os.environ.get(VARIABLE, "") or "on"
    if value not in MODES:
        raise InvalidArgument(f"{VARIABLE} must be off, bundle or on, got `{value}`")
    return value
