"""Builds each sdist from a copy of the checkout: `python -m release.sdists --out dist/release`. Nothing is fetched."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from . import tree
from .build import TREE, environment
from .data import load, version
from .projects import ROOT, distribution


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "release")
    out = parser.parse_args().out.resolve()
    data = load()
    tree.export(TREE)
    if repository := os.environ.get("CLOVER_OPS_REPOSITORY"):
        tree.stamp(TREE, list(data.projects.values()), repository, version())
    for name, folder in data.projects.items():
        for old in out.glob(f"{distribution(name).replace('-', '_')}-*.tar.gz"):
            old.unlink()
        command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(out), str(TREE / folder)]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"the sdist of {distribution(name)} is not made:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        (sdist,) = out.glob(f"{distribution(name).replace('-', '_')}-*.tar.gz")
        print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB", flush=True)
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(out.glob("*.tar.gz")))], check=True
    )


if __name__ == "__main__":
    main()
