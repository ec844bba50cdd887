"""What an index would refuse: unreadable metadata, a description that does not render."""

from __future__ import annotations

import subprocess
import sys

from . import Release, Result

NAME = "twine"
RULE = "twine check --strict"


def check(release: Release) -> Result:
    result = Result(f"{len(release.wheels)} wheels")
    for wheel in release.wheels:
        command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", str(wheel.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            result.fail(
                wheel.path.name, "; ".join(line for line in lines if not line.startswith("Checking")) or "failed"
            )
    return result
