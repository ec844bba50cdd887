"""`clover-ops demo`: what it needs, what it reads, what it prints. The network is in clover_ops.demo."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

import clover_ops

from . import native, output

_PROMPT = "Clover has three leaves; the fourth one is"


def run(
    prompt: str | None, file: Path | None, blocks: int, block_width: int, previews: int, seed: int, as_json: bool
) -> int:
    """The command; returns the exit code."""
    missing = [name for name in ("numpy", "ml_dtypes") if find_spec(name) is None]
    if missing:
        return _fail(f"the demo needs {' and '.join(missing)}: pip install 'clover-ops[demo]'", as_json)

    # NumPy's products are tiny here: on a busy machine, threads that wait for one another made them 15 times slower.
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

    from clover_ops.demo import report
    from clover_ops.demo.calls import OperatorError
    from clover_ops.demo.config import Config
    from clover_ops.demo.decode import Decoder, Preview

    config = Config(blocks=blocks, block_width=block_width, previews=previews, seed=seed)
    data = _read(prompt, file, config.max_prompt, quiet=as_json)
    obstacle = _obstacle()
    if obstacle:
        return _fail(f"{obstacle}; clover-ops doctor tells more", as_json)

    def progress(preview: Preview) -> None:
        if not as_json:
            output.say(report.preview_line(preview, output.encoding()))

    if not as_json:
        output.say(f'prompt: {len(data)} bytes "{report.escaped(data[-60:])}"')
    try:
        result = Decoder(config, clover_ops).run(data, progress)
    except (OperatorError, clover_ops.CloverError) as error:
        return _fail(str(error), as_json)
    if as_json:
        output.say_json(report.as_json(result, clover_ops.__version__))
    else:
        output.say(report.as_text(result))
    return 0 if report.verdict(result).startswith("PASS") else 1


def _read(prompt: str | None, file: Path | None, limit: int, quiet: bool) -> bytes:
    from clover_ops.demo.prompt import PromptError, from_file, from_text, is_text

    if file is None:
        data, size = from_text(_PROMPT if prompt is None else prompt, limit)
    else:
        try:
            data, size = from_file(file, limit)
        except PromptError as error:
            raise click.BadParameter(str(error), param_hint="'--file'") from None
        if not quiet and not is_text(data):
            output.say(f"note: {file} is not UTF-8 text; the network reads its bytes all the same", err=True)
    if size > limit and not quiet:
        output.say(f"note: the prompt has {size} bytes; the last {limit} are used", err=True)
    return data


def _obstacle() -> str:
    """Why the operators cannot run here; empty when they can."""
    from clover_ops.demo.calls import OPERATORS

    error = native.ask()["error"]
    if error:
        return f"the native library does not work: {error}"
    lacking = [name for name in OPERATORS if not clover_ops.supports(name, "cpu")]
    if not lacking:
        return ""
    what = "an operator" if len(lacking) == len(OPERATORS) else ", ".join(lacking)
    return f"no active backend runs {what} on the CPU (pip install 'clover-ops[cpu]')"


def _fail(reason: str, as_json: bool) -> int:
    if as_json:
        verdict: dict[str, Any] = {"schema": 1, "version": clover_ops.__version__}
        output.say_json({**verdict, "verdict": f"FAIL: {reason}", "passed": False})
    else:
        output.say(f"FAIL: {reason}")
    return 1
