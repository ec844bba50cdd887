"""No library links a driver, a GPU run time, torch, or a C++ run time: only what every machine of the tag has."""

from __future__ import annotations

import fnmatch

from .. import elf
from . import Release, Result, each_library, place

NAME = "needed"
RULE = "DT_NEEDED within the allow-list of ci/release/release.toml"


def check(release: Release) -> Result:
    lists = release.data.table["needed"]
    result, count = Result(), 0
    for wheel, member, data in each_library(release):
        count += 1
        library = elf.read(data)
        if library.machine != wheel.machine:
            result.fail(place(wheel, member), f"is for {library.machine}, the wheel for {wheel.machine}")
        own = {name.split("/")[-1] for name in wheel.libraries}
        brought = {
            name for name, project in lists["siblings"].items()
            if any(r.startswith(project) for r in wheel.metadata.get_all("Requires-Dist", []))
        }  # fmt: skip
        for name in library.needed:
            if name in lists["system"] or name in own or name in brought:
                continue
            if any(fnmatch.fnmatch(name, pattern) for pattern in lists["drivers"]):
                result.fail(
                    place(wheel, member), f"links {name}: drivers and frameworks are opened at run time, never linked"
                )
            elif name in lists["siblings"]:
                result.fail(
                    place(wheel, member), f"links {name}, and METADATA does not require {lists['siblings'][name]}"
                )
            else:
                result.fail(place(wheel, member), f"links {name}, which not every machine of the tag has")
    result.checked = f"{count} libraries"
    return result
