"""Every nox session and script that a workflow calls exists, and a workflow calls nothing else.

`nox -s lint` runs it after the schema check and the security audit of the same files.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from plan_tests import sessions
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
_SESSIONS = re.compile(r"^python3 noxfile\.py -s ([\w$ -]+?)( -- .*)?$")
_SCRIPT = re.compile(r'^(?:sudo (?:env PATH="\$PATH" )?)?(ci/[\w./-]+)( .*)?$')


def walk(node, key=""):
    """(key, text) of every string below."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from walk(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value, key)
    elif isinstance(node, str):
        yield key, node


def problems_of(path: Path, known: set[str]) -> list[str]:
    found = []
    for key, text in walk(YAML(typ="safe").load(path.read_text(encoding="utf-8"))):
        if key == "sessions" and not text.startswith("${{"):
            found += [f"no session `{name}`" for name in text.split(" -- ")[0].split() if name not in known]
        if key != "run":
            continue
        for line in filter(None, map(str.strip, text.splitlines())):
            if match := _SESSIONS.match(line):
                found += [f"no session `{n}`" for n in match[1].split() if n not in known and not n.startswith("$")]
            elif match := _SCRIPT.match(line):
                if not os.access(ROOT / match[1], os.X_OK):
                    found.append(f"{match[1]} is no script that can be run")
            else:
                found.append(f"`{line}` is neither a nox session nor a script in ci/")
    return [f"{path.relative_to(ROOT)}: {text}" for text in found]


def main() -> int:
    known = set(sessions())
    files = sorted([*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/*/action.yml")])
    problems = [problem for path in files for problem in problems_of(path, known)]
    print("\n".join(problems) or f"{len(files)} workflow files call what is there")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
