"""The platform tag is true: every symbol version that a library asks for is in the glibc that the tag names."""

from __future__ import annotations

from .. import audit
from . import Release, Result

NAME = "tag"
RULE = "auditwheel finds the tag's symbol versions, nothing to graft, no newer instruction set"


def check(release: Release) -> Result:
    result = Result(f"{len(release.wheels)} wheels, {release.data.tag}")
    for wheel in release.wheels:
        wanted = f"{release.data.tag}_{wheel.machine}"
        if wanted not in wheel.platforms:
            result.fail(wheel.path.name, f"the platform must be {wanted}, got {', '.join(wheel.platforms)}")
            continue
        for text in audit.obstacles(wheel, release.data):
            result.fail(wheel.path.name, text)
    return result
