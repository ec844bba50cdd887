"""Two builds of one commit are byte-identical: `python ci/release/check_reproducible.py [--against dist/release] [NAME ...]`.

The first build is the folder given by --against; without it, it is made too. The second one happens in another folder, of
another length and with an odd name, with an empty compiler cache, another umask, locale and time zone, and a later clock
for every file. Where two wheels differ, the members that differ are named.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from release import build, summary, tree
from release.data import load
from release.projects import distribution
from release.wheel import Wheel


def differences(a: Path, b: Path) -> list[str]:
    """Nothing when the files are the same; else what differs."""
    if a.read_bytes() == b.read_bytes():
        return []
    one, two = Wheel(a).members, Wheel(b).members
    found = [
        f"{name}: only in {'the first' if name in one else 'the second'}" for name in sorted(one.keys() ^ two.keys())
    ]
    found += [
        f"{name}: {_first(one[name], two[name])}" for name in sorted(one.keys() & two.keys()) if one[name] != two[name]
    ]
    return found or ["the same members, in another order or with other attributes"]


def _first(a: bytes, b: bytes) -> str:
    place = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    around = slice(max(0, place - 16), place + 16)
    return f"{len(a)} and {len(b)} bytes, the first difference at {place}: {a[around]!r} / {b[around]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--machine", default=platform.machine())
    arguments = parser.parse_args()
    data = load()
    names = arguments.names or [n for n in data.projects if arguments.machine in data.machines(n)]
    problems, same = [], []
    with tempfile.TemporaryDirectory(prefix="clover reproduced ü ") as folder:
        place = Path(folder)
        first = arguments.against
        if first is None:
            first = place / "first wheels"
            tree.export(place / "first")
            build.build_all(
                names, data, place / "first", first, arguments.machine, build.environment(cache=place / "first cache")
            )
        old = os.umask(0o077)
        try:
            tree.export(place / "a second and longer one")
            env = build.environment(cache=place / "cache") | {
                "TZ": "Pacific/Kiritimati",
                "LC_ALL": "C",
                "PYTHONHASHSEED": "7",
            }
            wheels = build.build_all(
                names, data, place / "a second and longer one", place / "wheels", arguments.machine, env
            )
        finally:
            os.umask(old)
        for name, wheel in zip(names, wheels):
            other = first / wheel.name
            if not other.is_file():
                problems.append(f"{distribution(name)}: {first} has no {wheel.name}")
                continue
            found = differences(other, wheel)
            problems += [f"{wheel.name}: {text}" for text in found]
            if not found:
                digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
                same.append(wheel.name)
                print(f"{wheel.name}: identical, SHA-256 {digest}")
    for problem in problems:
        print(f"FAILED {problem}", file=sys.stderr)
    if not problems:
        how = "the first as it was, the second" if arguments.against else "each"
        text = (
            f"{len(same)} wheels built twice, in two folders, {how} from an empty cache (objects and libc++ compiled anew, the"
            " device code taken as compiled), with another umask, locale and time zone: byte for byte the same"
        )
        summary.save(summary.FILE, "reproducible", {"text": text})
    print(f"{len(same)} passed, {len(names) - len(same)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
