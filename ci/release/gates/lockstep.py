"""One version everywhere, pinned exactly, and no distribution missing."""

from __future__ import annotations

import re

from packaging.requirements import Requirement

from ..data import version
from ..projects import CORE, distribution
from . import Release, Result, place

NAME = "lockstep"
RULE = "all wheels there, one version, exact pins both ways, extras for every backend, no vendor's package pinned"
_USERS_OWN = {"torch", "triton"}  # a vendor's build must never be replaced: no version is asked for


def check(release: Release) -> Result:
    wanted = version(release.data.root)
    result = Result(f"version {wanted}")
    _check_presence(release, result)
    for wheel in release.wheels:
        if wheel.version != wanted or wheel.metadata["Version"] != wanted:
            result.fail(wheel.path.name, f"is version {wheel.metadata['Version']}, the checkout is {wanted}")
        if wheel.manifest is not None and wheel.manifest.get("version") != [wanted]:
            result.fail(
                place(wheel, f"{wheel.package}/plugin.manifest"),
                f"says version {wheel.manifest.get('version')}, not {wanted}",
            )
        requirements = [Requirement(text) for text in wheel.metadata.get_all("Requires-Dist", [])]
        for requirement in requirements:
            if requirement.name in _USERS_OWN and requirement.specifier:
                result.fail(
                    place(wheel, "METADATA"),
                    f"`{requirement}` would replace a vendor's {requirement.name}: ask for no version",
                )
            if requirement.name.startswith("clover-ops") and str(requirement.specifier) != f"=={wanted}":
                result.fail(place(wheel, "METADATA"), f"`{requirement}` must pin =={wanted}")
        if wheel.name == CORE:
            _check_extras(release, wheel, requirements, result)
        elif not any(r.name == "clover-ops" and r.marker is None for r in requirements):
            result.fail(place(wheel, "METADATA"), f"does not require clover-ops=={wanted}")
    return result


def _check_presence(release: Release, result: Result) -> None:
    there = {(wheel.name, wheel.machine) for wheel in release.wheels}
    for machine in release.machines or sorted({wheel.machine for wheel in release.wheels}):
        for name in release.data.projects:
            if machine in release.data.machines(name) and (name, machine) not in there:
                result.fail(f"{distribution(name)} for {machine}", "there is no wheel of it")


def _check_extras(release: Release, wheel, requirements: list[Requirement], result: Result) -> None:
    """Each backend has its extra, and `all` holds every backend, on the machines that it is for."""
    extras: dict[str, dict[str, Requirement]] = {}
    for requirement in requirements:
        for extra in re.findall(r"extra == .([\w-]+)", str(requirement.marker or "")):
            extras.setdefault(extra, {})[requirement.name] = requirement
    backends = {name for name in release.data.projects if name != CORE}
    pinned = {n.removeprefix("clover-ops-") for own in extras.values() for n in own if n.startswith("clover-ops-")}
    for name in sorted(backends ^ pinned):
        what = "no extra asks for it" if name in backends else "an extra asks for it, and it is no distribution"
        result.fail(place(wheel, "METADATA"), f"{distribution(name)}: {what}")
    for name in sorted(backends & pinned):
        if distribution(name) not in extras.get(name, {}):
            result.fail(place(wheel, "METADATA"), f"no extra `{name}`")
        own = extras.get("all", {}).get(distribution(name))
        for machine in release.data.table["machines"]:
            environment = {"platform_machine": machine, "extra": "all"}
            asked = own is not None and own.marker.evaluate(environment)
            if asked != (machine in release.data.machines(name)):
                verb = "asks" if asked else "does not ask"
                result.fail(place(wheel, "METADATA"), f"extra `all` {verb} for {distribution(name)} on {machine}")
