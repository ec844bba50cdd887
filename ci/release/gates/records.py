"""Every RECORD is true, and no file has two owners: distributions are installed and removed in any order."""

from __future__ import annotations

import base64
import csv
import hashlib
import io

from . import Release, Result, place

NAME = "records"
RULE = "RECORD lists every file with its digest; no two distributions own one file"


def check(release: Release) -> Result:
    result, count = Result(), 0
    owners: dict[tuple[str, str], str] = {}
    for wheel in release.wheels:
        record = f"{wheel.dist_info}/RECORD"
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.members[record].decode())) if row}
        for member, data in wheel.members.items():
            count += 1
            if member not in rows:
                result.fail(place(wheel, member), "is not in RECORD")
            elif member != record:
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                if rows[member] != [f"sha256={digest}", str(len(data))]:
                    result.fail(place(wheel, member), "differs from its digest in RECORD")
            other = owners.setdefault((wheel.machine, member), wheel.path.name)
            if other != wheel.path.name:
                result.fail(place(wheel, member), f"{other} owns a file of this name too")
        for member in rows.keys() - wheel.members.keys():
            result.fail(place(wheel, member), "is in RECORD and not in the wheel")
    result.checked = f"{count} files"
    return result
