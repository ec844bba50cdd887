"""Metadata that a reader of an index, and a licence scanner, rely on."""

from __future__ import annotations

import os
import re

from ..projects import CORE
from . import Release, Result, place

NAME = "metadata"
RULE = "licence files, classifiers, links, py.typed, py3-none tags, entry points"
_CLASSIFIERS = (
    "Development Status ::", "Operating System :: POSIX :: Linux", "Programming Language :: Python :: 3", "Typing :: Typed",
)  # fmt: skip
_LINKS = ("Repository", "Documentation", "Changelog")


def check(release: Release) -> Result:
    result = Result(f"{len(release.wheels)} wheels")
    for wheel in release.wheels:
        where, metadata = place(wheel, "METADATA"), wheel.metadata
        if metadata["License-Expression"] != "Apache-2.0":
            result.fail(where, f"License-Expression must be Apache-2.0, got {metadata['License-Expression']}")
        for file in ("LICENSE", "THIRD_PARTY.txt"):
            if file not in metadata.get_all("License-File", []):
                result.fail(where, f"License-File {file} is missing")
            if not wheel.members.get(f"{wheel.dist_info}/licenses/{file}", b"").strip():
                result.fail(place(wheel, f"{wheel.dist_info}/licenses/{file}"), "missing or empty")
        for wanted in _CLASSIFIERS:
            if not any(text.startswith(wanted) for text in metadata.get_all("Classifier", [])):
                result.fail(where, f"no classifier `{wanted}`")
        if not metadata["Summary"] or not str(metadata.get_payload()).strip():
            result.fail(where, "a summary and a description are needed")
        if metadata["Requires-Python"] != ">=3.10":
            result.fail(where, f"Requires-Python must be >=3.10, got {metadata['Requires-Python']}")
        if f"{wheel.package}/py.typed" not in wheel.members:
            result.fail(place(wheel, f"{wheel.package}/py.typed"), "missing")
        tags = re.findall(r"^Tag: (.*)$", wheel.members[f"{wheel.dist_info}/WHEEL"].decode(), re.MULTILINE)
        if sorted(tags) != wheel.tags or not all(tag.startswith("py3-none-") for tag in tags):
            result.fail(
                place(wheel, "WHEEL"), f"tags {tags} must be py3-none and those of the file's name {wheel.tags}"
            )
        links = {text.split(",")[0] for text in metadata.get_all("Project-URL", [])}
        if os.environ.get("CLOVER_OPS_REPOSITORY") and (absent := sorted(set(_LINKS) - links)):
            result.fail(where, f"no Project-URL for {', '.join(absent)}")
        entries = wheel.members.get(f"{wheel.dist_info}/entry_points.txt", b"").decode()
        wanted = "clover-ops = clover_ops.cli:main" if wheel.name == CORE else f"{wheel.name} = {wheel.package}"
        if wanted not in entries:
            result.fail(place(wheel, "entry_points.txt"), f"lacks `{wanted}`")
    return result
