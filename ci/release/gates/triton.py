"""A plugin that provides Triton kernels carries their sources, their list and what was compiled ahead of time; nobody else
holds any of it."""

from __future__ import annotations

import fnmatch
import hashlib
import struct

from .. import elf
from ..wheel import Wheel
from . import Release, Result, place

NAME = "triton kernels"
RULE = "sources, list and compiled kernels in a plugin that provides them in slots 10 to 19, nothing of them elsewhere"
_SLOTS = range(10, 20)
_MAGIC, _DIGEST = b"CLOVERJ1", 32
_PREFIX = {"cuda": "sm_", "hip": ""}


def check(release: Release) -> Result:
    lists, result, count = release.data.table["triton"], Result(), 0
    folders = {pattern.split("/")[0] for pattern in (*lists["wanted"], *lists["allowed"])}
    for wheel in release.wheels:
        files = {member.partition("/")[2]: member for member in wheel.members if member.startswith(f"{wheel.package}/")}
        compiled = [name for name in wheel.members if name.endswith(".clvk")]
        if not provides(wheel):
            stray = [member for name, member in files.items() if _matches(name, lists["wanted"] + lists["allowed"])]
            for member in sorted({*stray, *compiled}):
                result.fail(place(wheel, member), "of the Triton kernels, and no provider of slots 10 to 19 uses it")
            continue
        for pattern in lists["wanted"]:
            if not any(_matches(name, [pattern]) for name in files):
                result.fail(place(wheel, f"{wheel.package}/{pattern}"), "missing; the manifest names Triton providers")
        for name, member in sorted(files.items()):
            if name.split("/")[0] in folders and not _matches(name, lists["wanted"] + lists["allowed"]):
                result.fail(
                    place(wheel, member), "is no part of the Triton kernels ([triton] in ci/release/release.toml)"
                )
        for member in compiled:
            count += 1
            for text in faults(wheel, member):
                result.fail(place(wheel, member), text)
    result.checked = f"{count} compiled kernels"
    return result


def provides(wheel: Wheel) -> bool:
    """Whether the manifest has a line `provider <operator> <slot> <name>` with one of Triton's slots."""
    lines = (wheel.manifest or {}).get("provider", [])
    on_gpu = (wheel.manifest or {}).get("device", [""])[0] in ("cuda", "rocm")
    return on_gpu and any(int(line.split()[1]) in _SLOTS for line in lines)


def faults(wheel: Wheel, member: str) -> list[str]:
    """What the loader would refuse, and code of an architecture that the manifest does not name."""
    data = wheel.members[member]
    if not data.startswith(_MAGIC) or hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        return ["is damaged: magic or checksum do not match"]
    (size,) = struct.unpack_from("<I", data, len(_MAGIC))
    start = len(_MAGIC) + 4
    header = dict(line.split(": ", 1) for line in data[start : start + size].decode().splitlines())
    texts = []
    if header["request"] != member.split("/")[-1].removesuffix(".clvk"):
        texts.append(f"holds the kernel of request {header['request']}: it would never be found")
    family, architecture, _ = header["target"].split(":")
    wanted = _PREFIX.get(family, "?") + architecture
    promised = {name.split(":")[0] for name in wheel.manifest.get("architecture", [])}
    if wanted not in promised:
        texts.append(f"is for {wanted}, which the manifest does not name")
    found = elf.code_objects(data[start + size :])
    if [name.rstrip("af") if family == "cuda" else name for name in found] != [wanted]:
        texts.append(f"says {header['target']} and holds code for {', '.join(found) or 'nothing'}")
    return texts


def _matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) and name.count("/") == pattern.count("/") for pattern in patterns)
