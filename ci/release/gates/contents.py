"""Stray files, empty folders, byte code, test folders: the usual accidents, and nothing outside the wheel's own package."""

from __future__ import annotations

import re
import subprocess
import sys

from . import Release, Result, place

NAME = "contents"
RULE = "check-wheel-contents; one package a wheel; nothing of the build, no path of the machine that built it"
# Of the build, not of the product. Device sources (.cu, .hip, .cuh) travel where a backend compiles on the user's machine.
_LEFTOVER = re.compile(r"\.(o|a|cpp|cc|cxx|ninja|log|orig|rej|swp)$|(^|/)(CMakeLists\.txt|CMakeCache\.txt|\.[^/]+)$")

# A source's absolute path in a library: `./common/x.cpp`, as mapped by the compiler, is none.
_PATH = re.compile(rb"(?<![\w./])/(?:[\w.+ -]+/)+[\w.+-]+\.(?:c|cc|cpp|cxx|h|hpp|cu|cuh|inc|py)\b")


def check(release: Release) -> Result:
    result = Result(f"{sum(len(w.members) for w in release.wheels)} files")
    for wheel in release.wheels:
        command = [
            sys.executable,
            "-m",
            "check_wheel_contents",
            "--no-config",
            "--toplevel",
            wheel.package,
            str(wheel.path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            for line in filter(str.strip, (done.stdout + done.stderr).splitlines()):
                result.fail(wheel.path.name, line.removeprefix(f"{wheel.path}: ").strip())
        for member in wheel.members:
            if member.split("/")[0] not in (wheel.package, wheel.dist_info):
                result.fail(place(wheel, member), f"installed outside {wheel.package}/")
            elif _LEFTOVER.search(member):
                result.fail(place(wheel, member), "a leftover of the build")
        compiled = {member: data for member, data in wheel.members.items() if member.endswith(".clvk")}
        for member, data in {**wheel.libraries, **compiled}.items():
            for found in sorted(set(_PATH.findall(data)))[:3]:
                result.fail(place(wheel, member), f"names {found.decode()}, a path of the machine that built it")
    return result
