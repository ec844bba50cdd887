"""zig at one path for all environments of a user: its cache, with libc++ for the tag's glibc, is good for that path."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

import ziglang


def program() -> Path:
    """The zig program of the installed ziglang, linked (or copied) into the user's cache folder once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clover-ops-build"
    home = cache / f"zig-{metadata.version('ziglang')}"
    if not home.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            partial = Path(folder) / "zig"
            shutil.copytree(
                Path(ziglang.__file__).parent,
                partial,
                copy_function=_link,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
            try:
                partial.rename(home)
            except OSError:  # another process was first
                if not home.is_dir():
                    raise
    return home / "zig"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
