"""The tables that a release leaves: kept as JSON in build/release/summary.json, shown, and written into docs/releasing.md."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from pathlib import Path

from .data import version
from .projects import ROOT

FILE = ROOT / "build" / "release" / "summary.json"
PAGE = ROOT / "docs" / "releasing.md"
MARKS = "<!-- {} of the summary: written by `python3 noxfile.py -s release-summary` -->"


def save(path: Path, part: str, value: dict) -> None:
    """Puts a part beside those that are there."""
    old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**old, part: value}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def gates_table(rows: list[dict], wheels: list[str]) -> str:
    cells = [
        [
            row["gate"],
            row["rule"],
            row["checked"],
            "passed" if not row["problems"] else f"{len(row['problems'])} problems",
        ]
        for row in rows
    ]
    return table(["gate", "rule", "checked", "result"], cells)


def rehearsal_table(rows: list[dict]) -> str:
    cells = [[row["step"], row["seen"], row["result"], f"{row['seconds']:.0f} s"] for row in rows]
    return table(["step", "seen", "result", "time"], cells)


def page_text(parts: dict) -> str:
    """What stands between the marks."""
    out = []
    if parts:
        python = ".".join(platform.python_version_tuple()[:2])
        here = f"{platform.machine()} with {os.cpu_count()} cores and Python {python}"
        out += [f"Made on {here}, {time.strftime('%Y-%m-%d', time.gmtime())}, for version {version()}.", ""]
    if "gates" in parts:
        names = ", ".join(f"`{name}`" for name in parts["gates"]["wheels"])
        out += [f"`release-check` over {names}:", "", gates_table(parts["gates"]["rows"], []), ""]
    if "reproducible" in parts:
        out += [f"`check-reproducible`: {parts['reproducible']['text']}", ""]
    if "rehearsal" in parts:
        out += ["`rehearse`:", "", rehearsal_table(parts["rehearsal"]["rows"]), ""]
    if "docs" in parts:
        out += [f"`docs`: {parts['docs']['text']}", ""]
    return "\n".join(out).strip()


def write_page(parts: dict, page: Path = PAGE) -> None:
    begin, end = MARKS.format("begin"), MARKS.format("end")
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{page}: must hold the lines `{begin}` and `{end}` once each")
    pattern = re.escape(begin) + ".*" + re.escape(end)
    new = re.sub(pattern, lambda _: f"{begin}\n\n{page_text(parts)}\n\n{end}", text, flags=re.DOTALL)
    page.write_text(new, encoding="utf-8")


def main() -> None:
    if not FILE.is_file():
        raise SystemExit(f"{FILE} is not there: run the sessions release-check and rehearse first")
    parts = json.loads(FILE.read_text(encoding="utf-8"))
    write_page(parts)
    print(page_text(parts))


if __name__ == "__main__":
    main()
