"""The gates of a release. Each module has NAME, RULE and `check(release) -> Result`; a problem says what and where.

A gate is added by adding its module to ALL.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..data import Data
from ..wheel import Wheel


@dataclass(frozen=True)
class Release:
    wheels: list[Wheel]
    data: Data
    machines: tuple[str, ...] = ()  # for which every distribution must have its wheel; empty: those that are there


@dataclass(frozen=True)
class Problem:
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass
class Result:
    checked: str = ""
    problems: list[Problem] = field(default_factory=list)

    def fail(self, where: str, what: str) -> None:
        self.problems.append(Problem(where, what))


def place(wheel: Wheel, member: str = "") -> str:
    return f"{wheel.path.name}: {member}" if member else wheel.path.name


def each_library(release: Release):
    for wheel in release.wheels:
        for member, data in wheel.libraries.items():
            yield wheel, member, data


def modules() -> list:
    from . import (
        changelog,
        contents,
        device_code,
        exports,
        lockstep,
        metadata,
        needed,
        records,
        rpath,
        sbom,
        size,
        tag,
        triton,
        twine,
    )

    return [
        twine, contents, metadata, tag, needed, rpath, exports, device_code, triton, records, size, sbom, lockstep,
        changelog,
    ]  # fmt: skip
