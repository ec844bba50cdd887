"""What stands between a wheel and its platform tag, by auditwheel: symbol versions, instruction sets, foreign libraries."""

from __future__ import annotations

import fnmatch
import logging

from auditwheel.architecture import Architecture
from auditwheel.error import AuditwheelError
from auditwheel.libc import Libc
from auditwheel.wheel_abi import analyze_wheel_abi

from .data import Data
from .wheel import Wheel


def obstacles(wheel: Wheel, data: Data) -> list[str]:
    """Nothing for a wheel that may carry the release's tag. Drivers and sibling distributions are excluded by name."""
    logging.getLogger("auditwheel").setLevel(logging.ERROR)
    tag = f"{data.tag}_{wheel.machine}"
    excluded = frozenset({"libclover_ops.so", *data.table["needed"]["siblings"], *data.table["needed"]["drivers"]})
    try:
        found = analyze_wheel_abi(
            Libc.GLIBC,
            Architecture(wheel.machine),
            wheel.path,
            excluded,
            disable_isa_ext_check=False,
            allow_graft=False,
        )
    except (AuditwheelError, ValueError) as error:
        return [f"auditwheel: {getattr(error, 'message', error)}"]
    policy = found.policies.get_policy_by_name(tag)
    texts = []
    if found.sym_policy < policy:
        newest = {library: max(versions, key=_order) for library, versions in found.versioned_symbols.items()}
        listed = ", ".join(f"{library} {version}" for library, version in sorted(newest.items()))
        texts.append(f"its symbols are {found.sym_policy.name}: {listed}")
    if found.machine_policy < policy:
        texts.append(f"compiled for a newer instruction set than {wheel.machine}'s baseline")
    libraries = [str(name).split("/")[-1] for name in found.external_refs[tag].libs]
    foreign = [name for name in libraries if not any(fnmatch.fnmatch(name, pattern) for pattern in excluded)]
    if foreign:
        texts.append(f"links libraries that the tag does not promise: {', '.join(sorted(foreign))}")
    return texts


def _order(version: str) -> tuple:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("_")[-1].split("."))
