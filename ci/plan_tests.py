#!/usr/bin/env python3
"""The pull request's jobs: one for each test session of the noxfile but the long ones, and the CPU tests on other Pythons.

`ci/plan_tests.py FILE` appends `matrix={"include": [...]}` to FILE, as a workflow's output. A new backend's session joins by
its name, `test-<name>`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

NOXFILE = Path(__file__).resolve().parent.parent / "noxfile.py"
# The nightly workflow runs these.
LONG = {"test-sanitizers", "test-sdist", "test-editable"}
ALSO = ["demo", "release-check"]
RUNNER, RUNNER_ARM = "ubuntu-24.04", "ubuntu-24.04-arm"


def sessions() -> list[str]:
    done = subprocess.run([sys.executable, str(NOXFILE), "--list"], capture_output=True, text=True, check=True)
    return re.findall(r"^[*-] ([\w-]+)(?: ->|$)", done.stdout, re.MULTILINE)


def jobs(names: list[str]) -> list[dict[str, str]]:
    own = [name for name in names if name.startswith("test-") and name not in LONG]
    plan = [{"sessions": name, "python": "3.11", "runner": RUNNER} for name in [*own, *ALSO]]
    plan += [{"sessions": "test-cpu", "python": python, "runner": RUNNER} for python in ("3.10", "3.13")]
    return [*plan, {"sessions": "test-cpu", "python": "3.12", "runner": RUNNER_ARM}]


def main() -> None:
    text = json.dumps({"include": jobs(sessions())})
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(f"matrix={text}\n")
    print(text)


if __name__ == "__main__":
    main()
