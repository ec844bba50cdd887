"""Writes a wheel so that the same files always make the same bytes, with a RECORD that is true."""

from __future__ import annotations

import base64
import hashlib
import os
import time
import zipfile
from pathlib import Path

EARLIEST = 315532800  # 1980, where zip begins


def timestamp() -> tuple[int, int, int, int, int, int]:
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST))
    return time.gmtime(max(epoch, EARLIEST))[:6]


def record(members: dict[str, bytes], path: str) -> bytes:
    """The RECORD, at `path`, of a wheel with these members."""
    lines = []
    for name in sorted(members.keys() - {path}):
        digest = base64.urlsafe_b64encode(hashlib.sha256(members[name]).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(members[name])}\n")
    return ("".join(lines) + f"{path},,\n").encode()


def write(path: Path, members: dict[str, bytes], dist_info: str, renew_record: bool = True) -> None:
    members = dict(members)
    if renew_record:
        members[f"{dist_info}/RECORD"] = record(members, f"{dist_info}/RECORD")
    partial = path.with_suffix(".partial")
    # The installer reads .dist-info last, RECORD at the very end, as in every wheel.
    order = sorted(members, key=lambda name: (name.startswith(dist_info), name.endswith("/RECORD"), name))
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in order:
            info = zipfile.ZipInfo(name, timestamp())
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (0o100755 if members[name][:4] == b"\x7fELF" else 0o100644) << 16
            archive.writestr(info, members[name])
    partial.replace(path)
