"""A built wheel as the gates see it: its name, its members, its metadata, its shared libraries."""

from __future__ import annotations

import email
import email.message
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.utils import parse_wheel_filename

from . import projects


@dataclass(frozen=True)
class Wheel:
    path: Path

    @property
    def project(self) -> str:
        return str(parse_wheel_filename(self.path.name)[0])

    @property
    def name(self) -> str:
        """The short name: core, cpu, ..."""
        return self.project.removeprefix("clover-ops").lstrip("-") or projects.CORE

    @property
    def package(self) -> str:
        """The import package that it owns."""
        return self.project.replace("-", "_")

    @property
    def version(self) -> str:
        return str(parse_wheel_filename(self.path.name)[1])

    @property
    def tags(self) -> list[str]:
        return sorted(map(str, parse_wheel_filename(self.path.name)[3]))

    @property
    def platforms(self) -> list[str]:
        return [tag.split("-", 2)[2] for tag in self.tags]

    @property
    def machine(self) -> str:
        for machine in ("x86_64", "aarch64"):
            if all(platform.endswith(machine) for platform in self.platforms):
                return machine
        return "?"

    @cached_property
    def members(self) -> dict[str, bytes]:
        with zipfile.ZipFile(self.path) as archive:
            return {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}

    @cached_property
    def dist_info(self) -> str:
        folders = {name.split("/")[0] for name in self.members if name.split("/")[0].endswith(".dist-info")}
        if len(folders) != 1:
            raise ValueError(f"{self.path.name}: one .dist-info folder expected, found {sorted(folders)}")
        return folders.pop()

    @cached_property
    def metadata(self) -> email.message.Message:
        return email.message_from_bytes(self.members[f"{self.dist_info}/METADATA"])

    @cached_property
    def libraries(self) -> dict[str, bytes]:
        return {name: data for name, data in self.members.items() if data[:4] == b"\x7fELF"}

    @cached_property
    def manifest(self) -> dict[str, list[str]] | None:
        """The plugin's manifest: key -> values; None for the core."""
        data = self.members.get(f"{self.package}/plugin.manifest")
        if data is None:
            return None
        values: dict[str, list[str]] = {}
        for line in data.decode().splitlines():
            key, _, value = line.partition(" ")
            values.setdefault(key, []).append(value)
        return values


def find(folder: Path) -> list[Wheel]:
    return [Wheel(path) for path in sorted(folder.rglob("clover_ops*.whl"))]
