"""Where the prompt comes from: any bytes will do, since the network reads bytes."""

from __future__ import annotations

import os
from pathlib import Path


class PromptError(Exception):
    """The prompt cannot be read; the message says why."""


def from_file(path: Path, limit: int) -> tuple[bytes, int]:
    """The last `limit` bytes of a file, and how many it has."""
    try:
        if path.is_dir():
            raise PromptError(f"{path} is a directory; --file takes a file")
        if not path.exists():
            raise PromptError(f"{path} does not exist")
        if not path.is_file():
            raise PromptError(f"{path} is not a regular file")
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - limit, 0))
            return file.read(limit), size
    except (OSError, ValueError) as error:
        raise PromptError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def from_text(text: str, limit: int) -> tuple[bytes, int]:
    """The last `limit` bytes of a command-line argument, and how many it has. Undecodable bytes come back as given."""
    data = text.encode("utf-8", "surrogateescape")
    return data[-limit:], len(data)


def is_text(data: bytes) -> bool:
    """Whether these bytes are text (a character cut in two at the very start does not count against them)."""
    if b"\0" in data:
        return False
    for cut in range(min(4, len(data) + 1)):
        try:
            data[cut:].decode("utf-8")
            return True
        except UnicodeDecodeError:
            continue
    return False
