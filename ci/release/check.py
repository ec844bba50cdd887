"""Every gate over a folder of wheels: `python -m release.check dist/release [--json FILE] [--machines x86_64,aarch64]`.

Prints one row a gate, then each problem with its place, and exits with 1 when there is one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import gates, summary, wheel
from .data import load


def run(release: gates.Release) -> list[dict]:
    """One row a gate. A gate that cannot read a wheel has found a problem, and the others still run."""
    rows = []
    for module in gates.modules():
        try:
            result = module.check(release)
        except Exception as error:
            result = gates.Result("stopped")
            result.fail(f"gate {module.NAME}", f"cannot read the wheels: {type(error).__name__}: {error}")
        problems = [str(problem) for problem in result.problems]
        rows.append({"gate": module.NAME, "rule": module.RULE, "checked": result.checked, "problems": problems})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write the rows there too")
    parser.add_argument("--machines", default="", help="machines that must be complete; default: those that are there")
    arguments = parser.parse_args()
    wheels = wheel.find(arguments.folder)
    if not wheels:
        print(f"{arguments.folder} holds no wheel of ours: nothing was checked", file=sys.stderr)
        return 1
    rows = run(gates.Release(wheels, load(), tuple(filter(None, arguments.machines.split(",")))))
    print(summary.gates_table(rows, [w.path.name for w in wheels]))
    if arguments.json:
        summary.save(arguments.json, "gates", {"wheels": [w.path.name for w in wheels], "rows": rows})
    problems = [problem for row in rows for problem in row["problems"]]
    for problem in problems:
        print(f"FAILED {problem}", file=sys.stderr)
    failed = sum(bool(row["problems"]) for row in rows)
    print(f"{len(rows) - failed} gates passed, {failed} failed, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
