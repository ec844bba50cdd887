"""Reads a plugin manifest in Python, for tools that must work without the native library. The format is described in
common/src/manifest.hpp."""

from __future__ import annotations

import re
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


_REQUIRED = ("name", "version", "abi", "library", "device", "probe")
_DEVICES = ("cpu", "cuda", "rocm")
_LARGEST_NUMBER = 1000000
_WORD = re.compile(r"[^ \t\n\v\f\r]+")


def read(path: Path) -> Manifest:
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from None
    manifest = Manifest(path)
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or line.startswith("#"):
            continue
        key, _, value = line.partition(" ")
        try:
            _take(manifest, seen, key, value)
        except ManifestError as error:
            raise ManifestError(f"{path}:{number}: {error}") from None
        seen.add(key)
    for key in ("clover-plugin", *_REQUIRED):
        if key not in seen:
            raise ManifestError(f"{path}: lacks `{key}`")
    return manifest


def _take(manifest: Manifest, seen: set[str], key: str, value: str) -> None:
    if not seen:
        if key != "clover-plugin":
            raise ManifestError("not a plugin manifest: must begin with `clover-plugin 1`")
        if value != "1":
            raise ManifestError(f"manifest format {value}, this reader knows format 1")
    elif key == "architecture":
        manifest.architectures.append(value)
    elif key == "provider":
        words = _WORD.findall(value)
        if len(words) != 3:
            raise ManifestError("`provider` needs an operator, a slot and a name")
        slot = _whole_number("slot", words[1])
        if any(provider[:2] == (words[0], slot) for provider in manifest.provides):
            raise ManifestError(f"{words[0]} has two providers in slot {words[1]}")
        manifest.provides.append((words[0], slot, words[2]))
    elif key in seen:
        raise ManifestError(f"`{key}` is given twice")
    elif key == "toolchain":
        manifest.toolchain = value
    elif key not in _REQUIRED:
        raise ManifestError(f"unknown key `{key}`")
    elif not value:
        raise ManifestError(f"`{key}` has no value")
    elif key == "abi":
        manifest.abi = _whole_number(key, value)
    elif key == "device" and value not in _DEVICES:
        raise ManifestError(f"`device` must be cpu, cuda or rocm, got `{value}`")
    elif key in ("library", "probe") and "/" in value:
        raise ManifestError(f"`{key}` must be a file name without folders, got `{value}`")
    else:
        setattr(manifest, key, value)


def _whole_number(key: str, text: str) -> int:
    digits = text.lstrip("0") or "0"
    if not re.fullmatch("[0-9]+", text) or len(digits) > 7 or int(digits) > _LARGEST_NUMBER:
        raise ManifestError(f"`{key}` must be a whole number, got `{text}`")
    return int(digits)
