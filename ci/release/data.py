"""release.toml, read once and checked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import projects

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("release.toml")


@dataclass(frozen=True)
class Data:
    table: dict
    root: Path

    @cached_property
    def projects(self) -> dict[str, str]:
        return projects.find(self.root)

    @property
    def tag(self) -> str:
        return self.table["policy"]["tag"]

    @property
    def glibc(self) -> str:
        return self.table["policy"]["glibc"]

    def of(self, name: str, key: str):
        """A distribution's own value of a key, or the default."""
        return self.table["distributions"].get(name, {}).get(key, self.table["defaults"][key])

    def machines(self, name: str) -> list[str]:
        return self.of(name, "machines")


def load(root: Path = projects.ROOT, file: Path = FILE) -> Data:
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    known = table["machines"].keys()
    for name, own in [("defaults", table["defaults"]), *table["distributions"].items()]:
        if unknown := own.keys() - table["defaults"].keys():
            sys.exit(f"{file}: {name}: unknown key `{sorted(unknown)[0]}`")
        if unknown := set(own.get("machines", [])) - known:
            sys.exit(f"{file}: {name}: no [machines.{sorted(unknown)[0]}]")
    return Data(table, root)


def version(root: Path = projects.ROOT) -> str:
    text = (root / "common" / "clover_ops" / "_version.py").read_text(encoding="utf-8")
    return text.split('"')[-2]
