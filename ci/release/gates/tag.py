"""The platform tag is true: every symbol version that a library asks for is in the glibc that the tag names."""

from __future__ import annotations

import fnmatch
import logging

from auditwheel.architecture import Architecture
from auditwheel.error import AuditwheelError
from auditwheel.libc import Libc
from auditwheel.wheel_abi import analyze_wheel_abi

from . import Release, Result

NAME = "tag"
RULE = "auditwheel finds the tag's symbol versions, nothing to graft, no newer instruction set"


def check(release: Release) -> Result:
    logging.getLogger("auditwheel").setLevel(logging.ERROR)
    result = Result(f"{len(release.wheels)} wheels, {release.data.tag}")
    siblings = release.data.table["needed"]["siblings"]
    exclude = frozenset({"libclover_ops.so", *siblings, *release.data.table["needed"]["drivers"]})
    for wheel in release.wheels:
        wanted = f"{release.data.tag}_{wheel.machine}"
        if wanted not in wheel.platforms:
            result.fail(wheel.path.name, f"the platform must be {wanted}, got {', '.join(wheel.platforms)}")
            continue
        try:
            found = analyze_wheel_abi(
                Libc.GLIBC,
                Architecture(wheel.machine),
                wheel.path,
                exclude,
                disable_isa_ext_check=False,
                allow_graft=False,
            )
        except (AuditwheelError, ValueError) as error:
            result.fail(wheel.path.name, f"auditwheel: {getattr(error, 'message', error)}")
            continue
        policy = found.policies.get_policy_by_name(wanted)
        if found.sym_policy < policy:
            newest = {library: max(versions, key=_order) for library, versions in found.versioned_symbols.items()}
            result.fail(wheel.path.name, f"its symbols are {found.sym_policy.name}: {_text(newest)}")
        if found.machine_policy < policy:
            result.fail(wheel.path.name, f"compiled for a newer instruction set than {wheel.machine}'s baseline")
        foreign = [name for name in found.external_refs[wanted].libs if not _matches(name, exclude)]
        if foreign:
            result.fail(wheel.path.name, f"links libraries that the tag does not promise: {', '.join(sorted(foreign))}")
    return result


def _matches(name: str, patterns: frozenset[str]) -> bool:
    return any(fnmatch.fnmatch(str(name).split("/")[-1], pattern) for pattern in patterns)


def _order(version: str) -> tuple:
    digits = version.split("_")[-1].split(".")
    return tuple(int(d) if d.isdigit() else 0 for d in digits)


def _text(newest: dict[str, str]) -> str:
    return ", ".join(f"{library} {version}" for library, version in sorted(newest.items()))
