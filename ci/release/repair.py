"""Gives a built wheel its platform tag and its bill of materials: `python -m release.repair WHEEL OUT`.

auditwheel proves the tag, for any machine's wheel on any machine. Drivers and sibling distributions are excluded by name;
whatever else would have to be grafted is an error, because a wheel of ours brings no foreign library. Nothing inside is
changed but the tag.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from . import audit, repack, sbom
from .data import Data, load
from .wheel import Wheel


def repair(path: Path, out: Path, data: Data) -> Path:
    wheel = Wheel(path)
    tag = f"{data.tag}_{wheel.machine}"
    if obstacles := audit.obstacles(wheel, data):
        sys.exit(f"{path.name} cannot carry the tag {tag}: {'; '.join(obstacles)}")
    members = dict(wheel.members)
    member = f"{wheel.dist_info}/WHEEL"
    members[member] = re.sub(rb"(?m)^Tag: .*$", f"Tag: py3-none-{tag}".encode(), members[member])
    members[sbom.member(wheel)] = sbom.text(wheel, data.table["needed"]["system"]).encode()
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{wheel.package}-{wheel.version}-py3-none-{tag}.whl"
    repack.write(target, members, wheel.dist_info)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    print(repair(arguments.wheel, arguments.out, load()))


if __name__ == "__main__":
    main()
