"""Release notes: the changelog's entry of a version. `python -m release.notes VERSION` prints it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from .projects import ROOT


class NoEntry(ValueError):
    """The changelog has no entry for a version; the message says which it has."""


@dataclass(frozen=True)
class Entry:
    version: str
    date: str | None
    text: str


_HEADING = re.compile(r"^## (\S+) \((unreleased|\d{4}-\d{2}-\d{2})\)$", re.MULTILINE)


def entry(path: Path, version: str) -> Entry:
    text = path.read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(text))
    for heading, following in zip(headings, [*headings[1:], None]):
        if heading[1] == version:
            body = text[heading.end() : following.start() if following else len(text)]
            return Entry(version, None if heading[2] == "unreleased" else heading[2], body.strip() + "\n")
    known = ", ".join(heading[1] for heading in headings) or "none"
    raise NoEntry(f"no entry `## {version} (YYYY-MM-DD)`; there is {known}")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m release.notes VERSION")
    try:
        print(entry(ROOT / "CHANGELOG.md", sys.argv[1].removeprefix("v")).text, end="")
    except NoEntry as error:
        sys.exit(f"CHANGELOG.md: {error}")


if __name__ == "__main__":
    main()
