"""Printing that never fails on a name or path that the terminal's encoding lacks."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click


def encoding() -> str:
    """What standard output is encoded in."""
    return sys.stdout.encoding or "ascii"


def say(text: str, err: bool = False) -> None:
    """Print a line; characters that cannot be encoded are escaped."""
    stream = sys.stderr if err else sys.stdout
    name = stream.encoding or "ascii"
    click.echo(text.encode(name, "backslashreplace").decode(name), err=err)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table of which the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def say_json(document: dict[str, Any]) -> None:
    """Print one JSON document, in ASCII."""
    click.echo(_json(document))


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write one JSON document, in ASCII; OSError where that cannot be."""
    path.write_text(_json(document) + "\n", encoding="ascii")


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, allow_nan=False, default=str)
