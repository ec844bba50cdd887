"""Builds each distribution's sdist and, from an unpacked copy in a folder with a space and a non-ASCII letter, its wheel.

The wheel must hold the same bytes as the one built from the repository. Needs the build requirements installed: nothing is
fetched, and an index that is asked all the same is none.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path


def build(kind: str, project: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(out), str(project)]
    offline = {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **offline})
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stdout[-4000:]}\n{result.stderr[-2000:]}")
    (product,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return product


def contents(wheel: Path) -> dict[str, int]:
    """File name -> checksum, but of RECORD, whose order is the builder's."""
    with zipfile.ZipFile(wheel) as archive:
        return {i.filename: i.CRC for i in archive.infolist() if not i.filename.endswith("RECORD")}


def check(name: str, project: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="clover sdist ü ") as folder:
        root = Path(folder)
        sdist = build("sdist", project, root / "sdist")
        with tarfile.open(sdist) as archive:
            if sys.version_info >= (3, 12):
                archive.extractall(root / "unpacked", filter="data")
            else:
                archive.extractall(root / "unpacked")
        (unpacked,) = (root / "unpacked").iterdir()
        from_sdist = contents(build("wheel", unpacked, root / "from sdist"))
        from_tree = contents(build("wheel", project, root / "from tree"))
        differing = sorted(f for f in from_sdist.keys() | from_tree.keys() if from_sdist.get(f) != from_tree.get(f))
        if differing:
            sys.exit(f"{name}: the wheel from the sdist differs from the repository's in {', '.join(differing)}")
        print(f"{name}: {sdist.name} builds the same {len(from_sdist)} files, byte for byte", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="+", metavar="NAME=FOLDER")
    for item in parser.parse_args().projects:
        name, _, folder = item.partition("=")
        check(name, Path(folder).resolve())


if __name__ == "__main__":
    main()
