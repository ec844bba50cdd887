"""A library looks for others beside itself or nowhere."""

from __future__ import annotations

import posixpath

from .. import elf
from . import Release, Result, each_library, place

NAME = "rpath"
RULE = "DT_RPATH and DT_RUNPATH stay inside the wheel's package"


def check(release: Release) -> Result:
    result, count = Result(), 0
    for wheel, member, data in each_library(release):
        for path in filter(None, elf.read(data).rpath):
            count += 1
            below = path.replace("${ORIGIN}", "$ORIGIN").removeprefix("$ORIGIN")
            inside = posixpath.normpath(posixpath.dirname(member) + "/" + below)
            if not path.startswith(("$ORIGIN", "${ORIGIN}")) or inside.split("/")[0] != wheel.package:
                result.fail(place(wheel, member), f"RPATH `{path}` leads outside {wheel.package}/")
    result.checked = f"{count} paths"
    return result
