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


def flatten(root: Path, source: str) -> str:
    """The source with our own headers put in where they are first included, so that it compiles alone."""
    seen: set[Path] = set()

    def lines(path: Path) -> list[str]:
        if path in seen:
            return []
        seen.add(path)
        taken = [f"// ---- {path.relative_to(root.resolve()).as_posix()}"]
        for line in path.read_text(encoding="utf-8").splitlines():
            include = _INCLUDE.match(line)
            places = (path.parent / include[1], root / include[1]) if include else ()
            own = next((place.resolve() for place in places if place.is_file()), None)
            if own is not None:
                taken += lines(own)
            elif line.strip() != "#pragma once":
                taken.append(line)
        return taken

    return "\n".join(lines((root / source).resolve())) + "\n"


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest(root: Path, source: str) -> str:
    """SHA-256 over the names and contents of `closure`."""
    sha = hashlib.sha256()
    for name in closure(root, source):
        content = (root / name).read_bytes()
        sha.update(f"{name}\0{len(content)}\0".encode())
        sha.update(content)
    return sha.hexdigest()
