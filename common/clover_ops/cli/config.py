"""`clover-ops config`: where a C++ build finds headers, libraries and the CMake package."""

from __future__ import annotations

import shlex
from pathlib import Path

from . import output

_LIBRARY = "libclover_ops.so"


def run(cmakedir: bool, includes: bool, libs: bool) -> int:
    """The command; returns the exit code."""
    from clover_ops import _core

    package = Path(_core.package_dir())
    answers = {
        "cmakedir": str(package / "lib" / "cmake" / "CloverOps"),
        "includes": str(package / "include"),
        "libs": f"-L{shlex.quote(str(package / 'lib'))} -lclover_ops",
    }
    asked = [name for name, wanted in (("cmakedir", cmakedir), ("includes", includes), ("libs", libs)) if wanted]
    for name in asked or answers:
        output.say(answers[name] if asked else f"{name}: {answers[name]}")

    places = {"cmakedir": package / "lib" / "cmake" / "CloverOps", "includes": package / "include"}
    places["libs"] = package / "lib" / _LIBRARY
    absent = [str(places[name]) for name in asked or answers if not places[name].exists()]
    for place in absent:
        output.say(f"{place} does not exist: is the installation complete?", err=True)
    return 1 if absent else 0
