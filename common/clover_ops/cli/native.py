"""Asks the native library about itself, in a child process: a damaged library can end the process that loads it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

_TIMEOUT = 120

# Whatever a plugin prints goes to stderr, so that stdout carries the answer alone.
_CHILD = """
import json, os, sys
answer = os.dup(1)
os.dup2(2, 1)
sys.path[:] = json.loads(sys.argv[1])
import clover_ops
from clover_ops import _core
error = _core.library_error()
result = {"error": error, "describe": None, "call": None}

def call_on_the_cpu():
    clover_ops.warmup("cpu")
    try:
        import numpy
    except ImportError:
        return
    clover_ops.cast(numpy.zeros((1, 1), "float32"), numpy.zeros((1, 1), "float32"))

if error is None:
    try:
        result["describe"] = clover_ops.describe()
        if clover_ops.supports("cast", "cpu"):
            try:
                call_on_the_cpu()
            except Exception as failure:
                result["call"] = f"{type(failure).__name__}: {failure}"
    except Exception as failure:
        result["error"] = f"{type(failure).__name__}: {failure}"
os.write(answer, json.dumps(result).encode())
"""


def ask() -> dict[str, Any]:
    """{"error": why the library does not work, "describe": clover_ops.describe(), "call": why a call on the CPU fails}, each
    None where there is no such thing."""
    environment = {**os.environ, "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1"}  # else it may compile C++ for half a minute
    command = [sys.executable, "-c", _CHILD, json.dumps(sys.path)]
    try:
        child = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return _failed(f"no answer within {_TIMEOUT} s")
    except (OSError, ValueError) as error:
        return _failed(f"a child process cannot be started: {error}")
    if child.returncode < 0:
        return _failed(f"loading it ended the process with {_signal_name(-child.returncode)}")
    try:
        return json.loads(child.stdout)
    except ValueError:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        return _failed(lines[-1] if lines else f"the child process answered nothing (exit code {child.returncode})")


def _failed(error: str) -> dict[str, Any]:
    return {"error": error, "describe": None, "call": None}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
