"""Running the installed command as a user does, in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from clover_ops import _core

Cli = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """cli(*arguments, path=[…], **variables): path goes before the installed packages, a variable of None is unset."""

    def run(*arguments: str, path: Path | None = None, **variables: str | None) -> subprocess.CompletedProcess:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CLOVER_OPS_")}
        environment["CLOVER_OPS_CACHE_DIR"] = str(tmp_path / "cache")
        environment["PYTHONPATH"] = str(path) if path else ""
        for name, value in variables.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        command = [sys.executable, "-m", "clover_ops", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

    return run


@pytest.fixture
def package_copy(tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the installed clover_ops to damage, and the directory to put on the path for it."""
    root = tmp_path / "copy"
    package = root / "clover_ops"
    shutil.copytree(_core.package_dir(), package, symlinks=True)
    return package, root
