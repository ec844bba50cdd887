"""Each GPU wheel holds code for every architecture that its manifest promises, and no other wheel holds any."""

from __future__ import annotations

from collections import Counter

from .. import elf
from ..projects import CORE
from . import Release, Result, each_library, place

NAME = "device code"
RULE = "code objects of every architecture of the manifest in a GPU wheel, none elsewhere"


def check(release: Release) -> Result:
    result, count = Result(), 0
    for wheel, member, data in each_library(release):
        found = Counter(elf.code_objects(data))
        count += sum(found.values())
        main = member == f"{wheel.package}/lib{wheel.package}.so"
        on_gpu = wheel.manifest is not None and wheel.manifest.get("device", [""])[0] in ("cuda", "rocm")
        if not (on_gpu and main):
            if found:
                result.fail(
                    place(wheel, member), f"holds device code for {', '.join(sorted(found))}; only a GPU plugin may"
                )
            continue
        # Features, as in gfx90a:xnack-, are no part of what a code object is named by.
        promised = {name.split(":")[0] for name in wheel.manifest.get("architecture", [])}
        if not promised:
            result.fail(place(wheel, f"{wheel.package}/plugin.manifest"), "a GPU plugin names its architectures")
        for architecture in sorted(promised - found.keys()):
            result.fail(place(wheel, member), f"no code object for {architecture}, which the manifest promises")
        for architecture in sorted(found.keys() - promised):
            result.fail(
                place(wheel, member),
                f"{found[architecture]} code objects for {architecture}, which the manifest does not name",
            )
    for wheel in release.wheels:
        if wheel.manifest is None and wheel.name != CORE:
            result.fail(place(wheel, f"{wheel.package}/plugin.manifest"), "missing")
    result.checked = f"{count} code objects"
    return result
