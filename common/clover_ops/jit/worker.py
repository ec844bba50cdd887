"""The compiler's processes: each compiles one request after the other, told by lines of JSON.

A Python may print before it runs what it is given (`sitecustomize`, a wrapper's banner), so an answer is a line that begins
with a word which only the two processes know; other lines are passed on to stderr.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from clover_ops.errors import CompileError

from . import compiler
from .errors import KernelTableError, MalformedRequest, ToolchainError
from .kernels import Kernel
from .request import Request
from .toolchain import Toolchain

_CHILD = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from clover_ops.jit import worker; worker.main()"
_ERRORS = {kind.__name__: kind for kind in (CompileError, ToolchainError, KernelTableError, MalformedRequest)}


def interpreter() -> str:
    """The Python to run the compiler in: this one, unless it is embedded in another program."""
    if chosen := os.environ.get("CLOVER_OPS_PYTHON"):
        return chosen
    if Path(sys.executable or "").name.startswith("python"):
        return sys.executable
    raise ToolchainError(
        f"kernels are compiled by a Python of its own, and {sys.executable or 'the running one'!r} is none: set "
        "CLOVER_OPS_PYTHON to the path of python3"
    )


_MOST_NOISE = 1000  # lines; what prints more is no Python that will ever answer


class Worker:
    """One such process. Use as a context manager."""

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="clover-ops-jit-")
        self._child: subprocess.Popen[bytes] | None = None
        self._word = secrets.token_hex(8)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: Any) -> None:
        self._end()
        self._scratch.cleanup()

    def compile(self, request: Request, kernel: Kernel, tools: Toolchain) -> bytes:
        """The artifact's bytes; raises CompileError, also when the process dies."""
        if self._child is None:
            self._child = self._start()
        task = {"request": request.text(), "folder": str(kernel.folder.absolute()), "tools": vars(tools)}
        try:
            self._child.stdin.write(json.dumps(task).encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # it is dead; what it printed is still to be read
        answer = self._read()
        if answer is None:
            raise CompileError(f"kernel {request.kernel}, {request.target.text}: {self._obituary()}")
        if "error" in answer:
            raise _ERRORS.get(answer["kind"], CompileError)(answer["error"])
        return base64.b64decode(answer["artifact"])

    def _read(self) -> dict[str, str] | None:
        """The next answer; None where the process ends instead."""
        for _ in range(_MOST_NOISE):
            line = self._child.stdout.readline()
            if not line.endswith(b"\n"):  # half an answer is none
                return None
            if line.startswith(self._word.encode() + b" "):
                return json.loads(line[len(self._word) :])
            if noise := line.decode(errors="replace").strip():
                print(noise, file=sys.stderr, flush=True)
        python = self._child.args[0]
        self._child.kill()
        self._end()
        raise CompileError(f"{python} prints without end and compiles nothing: CLOVER_OPS_PYTHON must be a Python")

    def _start(self) -> subprocess.Popen[bytes]:
        command = [interpreter(), "-c", _CHILD, json.dumps([str(entry) for entry in sys.path]), self._word]
        try:
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=compiler.environment(dict(os.environ), self._scratch.name),
            )  # fmt: skip
        except OSError as error:
            raise ToolchainError(f"{command[0]} cannot be started to compile kernels: {error.strerror}") from None

    def _obituary(self) -> str:
        python = self._child.args[0]
        code = self._end()
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            return f"the compiler's process was ended by {name}"
        return f"the compiler's process, {python}, ended with exit code {code}; what it printed is above"

    def _end(self) -> int:
        child, self._child = self._child, None
        if child is None:
            return 0
        try:
            child.stdin.close()
        except OSError:
            pass
        child.stdout.close()
        return child.wait()


def main() -> None:
    """The process itself: tasks on stdin, answers on what was stdout; whatever else prints goes to stderr."""
    word = sys.argv[2]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        # What was printed before may have left its line open.
        print(f"\n{word} {json.dumps(_answer(json.loads(line)))}", file=answers, flush=True)


def _answer(task: dict[str, Any]) -> dict[str, str]:
    from . import request as requests

    try:
        request = requests.parse(task["request"])
        kernel = compiler.kernel_of(request, Path(task["folder"]))
        data = compiler.compile_request(request, kernel, Toolchain(**task["tools"]))
    except CompileError as error:
        return {"error": str(error), "kind": type(error).__name__}
    except Exception as error:
        return {"error": f"kernel compiler: {type(error).__name__}: {error}", "kind": "CompileError"}
    return {"artifact": base64.b64encode(data).decode()}
