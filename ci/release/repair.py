"""Gives a built wheel its platform tag and its bill of materials: `python -m release.repair WHEEL OUT [--machine M]`.

auditwheel proves the tag. Drivers and sibling distributions are excluded by name; anything else that it would have to
graft is an error, because a wheel of ours brings no foreign library.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from . import repack, sbom
from .data import Data, load
from .wheel import Wheel


def repair(wheel: Path, out: Path, data: Data) -> Path:
    machine = Wheel(wheel).machine
    excluded = [*data.table["needed"]["siblings"], *data.table["needed"]["drivers"]]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "auditwheel", "repair", "--plat", f"{data.tag}_{machine}", "--only-plat",
            "--wheel-dir", folder, *(word for name in excluded for word in ("--exclude", name)), str(wheel),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"auditwheel cannot give {wheel.name} the tag {data.tag}_{machine}:\n{done.stdout}{done.stderr}")
        (repaired,) = map(Wheel, Path(folder).glob("*.whl"))
        if grafted := sorted(repaired.libraries.keys() - Wheel(wheel).libraries.keys()):
            sys.exit(f"{wheel.name}: auditwheel had to graft {', '.join(grafted)}; a wheel brings no foreign library")
        members = dict(repaired.members)
        members[sbom.member(repaired)] = sbom.text(repaired, data.table["needed"]["system"]).encode()
        out.mkdir(parents=True, exist_ok=True)
        repack.write(out / repaired.path.name, members, repaired.dist_info)
    return out / repaired.path.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    print(repair(arguments.wheel, arguments.out, load()))


if __name__ == "__main__":
    main()
