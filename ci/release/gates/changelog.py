"""The version has its entry in CHANGELOG.md; on a tag, a dated one."""

from __future__ import annotations

import os

from .. import notes
from ..data import version
from . import Release, Result

NAME = "changelog"
RULE = "an entry for the version; dated, and equal to the tag, when a tag is built"


def check(release: Release) -> Result:
    wanted = version(release.data.root)
    result = Result(f"entry {wanted}")
    try:
        entry = notes.entry(release.data.root / "CHANGELOG.md", wanted)
    except notes.NoEntry as error:
        result.fail("CHANGELOG.md", str(error))
        return result
    if not entry.text.strip():
        result.fail("CHANGELOG.md", f"the entry of {wanted} is empty")
    tag = os.environ.get("CLOVER_RELEASE_TAG", "")
    if tag and tag != f"v{wanted}":
        result.fail("CHANGELOG.md", f"the tag is {tag}, the version is {wanted}: the tag must be v{wanted}")
    if tag and entry.date is None:
        result.fail("CHANGELOG.md", f"the entry of {wanted} has no date: `## {wanted} (YYYY-MM-DD)`")
    return result
