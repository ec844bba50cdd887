"""What a device source consists of, as far as the checkout goes: the file and every header of ours that it includes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def closure(root: Path, source: str) -> list[str]:
    """The source and its headers, sorted, as paths from the root. Toolkit headers are not among them."""
    found: set[str] = set()
    pending = [root / source]
    while pending:
        path = pending.pop()
        name = path.resolve().relative_to(root.resolve()).as_posix()
        if name in found:
            continue
        found.add(name)
        for include in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            for candidate in (path.parent / include, root / include):
                if candidate.is_file():
                    pending.append(candidate)
                    break
    return sorted(found)


def digest(root: Path, source: str) -> str:
    """SHA-256 over the names and contents of `closure`."""
    sha = hashlib.sha256()
    for name in closure(root, source):
        content = (root / name).read_bytes()
        sha.update(f"{name}\0{len(content)}\0".encode())
        sha.update(content)
    return sha.hexdigest()
