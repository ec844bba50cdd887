"""Reads a plugin manifest in Python, for tools that must work without the native library. The format is described in
common/src/manifest.hpp."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


class ManifestError(ValueError):
    """The manifest is broken; the message has its path and line."""


@dataclass
class Manifest:
    path: Path
    name: str = ""
    version: str = ""
    abi: int = 0
    library: str = ""
    device: str = ""
    probe: str = ""
    toolchain: str = ""
    architectures: list[str] = field(default_factory=list)
    provides: list[tuple[str, int, str]] = field(default_factory=list)


_PLAIN = ("name", "version", "abi", "library", "device", "probe", "toolchain")


def read(path: Path) -> Manifest:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from None
    manifest = Manifest(path)
    if not lines or lines[0] != "clover-plugin 1":
        raise ManifestError(f"{path}:1: not a plugin manifest: must begin with `clover-plugin 1`")
    for number, line in enumerate(lines[1:], 2):
        if not line or line.startswith("#"):
            continue
        key, _, value = line.partition(" ")
        if key == "architecture":
            manifest.architectures.append(value)
        elif key == "provider":
            words = value.split()
            if len(words) != 3 or not words[1].isdigit():
                raise ManifestError(f"{path}:{number}: `provider` needs an operator, a slot and a name")
            manifest.provides.append((words[0], int(words[1]), words[2]))
        elif key == "abi":
            if not value.isdigit():
                raise ManifestError(f"{path}:{number}: `abi` must be a whole number, got `{value}`")
            manifest.abi = int(value)
        elif key in _PLAIN:
            setattr(manifest, key, value)
        else:
            raise ManifestError(f"{path}:{number}: unknown key `{key}`")
    for key in ("name", "version", "abi", "library", "device", "probe"):
        if not getattr(manifest, key):
            raise ManifestError(f"{path}: lacks `{key}`")
    return manifest
