"""Printing that never fails on a name or path that the terminal's encoding lacks."""

from __future__ import annotations

import json
import sys
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


def say_json(document: dict[str, Any]) -> None:
    """Print one JSON document, in ASCII."""
    click.echo(json.dumps(document, indent=2, allow_nan=False, default=str))
