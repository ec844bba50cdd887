"""The bill of materials is valid, says what the wheel really holds, and each of its parts is named in THIRD_PARTY.txt."""

from __future__ import annotations

import json

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from .. import sbom
from . import Release, Result, place

NAME = "sbom"
RULE = "a CycloneDX bill of materials that agrees with what is linked, and THIRD_PARTY.txt with it"
_OWN = "clover-ops"


def check(release: Release) -> Result:
    result, count = Result(), 0
    system = release.data.table["needed"]["system"]
    for wheel in release.wheels:
        member = sbom.member(wheel)
        where = place(wheel, member)
        if member not in wheel.members:
            result.fail(where, "missing")
            continue
        text = wheel.members[member].decode()
        if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
            result.fail(where, f"is no CycloneDX document: {str(error.data)[:300]}")
            continue
        listed = {part["name"]: _parts(part) for part in json.loads(text).get("components", [])}
        linked = {part["name"]: _parts(part) for part in json.loads(sbom.text(wheel, system)).get("components", [])}
        count += len(listed)
        for name in sorted(linked.keys() - listed.keys()):
            result.fail(where, f"{name} is in the wheel ({linked[name]}) and not listed")
        for name in sorted(listed.keys() - linked.keys()):
            result.fail(where, f"lists {name}, which is not in the wheel")
        for name in sorted(listed.keys() & linked.keys()):
            if listed[name] != linked[name]:
                result.fail(where, f"{name}: lists {listed[name]}, the wheel has {linked[name]}")
        notices = wheel.members.get(f"{wheel.dist_info}/licenses/THIRD_PARTY.txt", b"").decode()
        for name in sorted(linked):
            if name != _OWN and name not in notices:
                result.fail(place(wheel, "THIRD_PARTY.txt"), f"does not name {name}, which the wheel holds or links")
    result.checked = f"{count} parts"
    return result


def _parts(component: dict) -> str:
    return ", ".join(sorted(f"{p['name'].split(':')[-1]} {p['value']}" for p in component.get("properties", [])))
