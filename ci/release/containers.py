"""Release wheels in manylinux containers, by cibuildwheel.

`python -m release.containers NAME MACHINE` builds one wheel into dist/release; needs docker or podman. `--plan FILE` appends
a workflow's matrix, `matrix={"include": [...]}`, to FILE. The containers compile host code only: the device code that
`nox -s device-code` made lies in the copy of the checkout that they are given.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import tree
from .data import Data, load, version
from .projects import ROOT, distribution

COPY = ROOT / "build" / "release" / "containers"


def plan(data: Data) -> list[dict[str, str]]:
    return [
        {"distribution": name, "machine": machine, "runner": data.table["machines"][machine]["runner"]}
        for name in data.projects
        for machine in data.machines(name)
    ]


def environment(data: Data) -> dict[str, str]:
    images = {f"CIBW_MANYLINUX_{m.upper()}_IMAGE": own["image"] for m, own in data.table["machines"].items()}
    return {**os.environ, **images, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", tree.commit_time())}


def prepare(data: Data) -> None:
    """The copy that goes into the container: no links out of it, no build folders but the device code."""
    shutil.rmtree(COPY, ignore_errors=True)
    tree.export(COPY)
    link = COPY / "build" / "device-code"
    if link.is_symlink():
        code = link.resolve()
        link.unlink()
        shutil.copytree(code, link)
    if repository := os.environ.get("CLOVER_OPS_REPOSITORY"):
        tree.stamp(COPY, list(data.projects.values()), repository, version())


def command(data: Data, name: str, machine: str, out: Path) -> list[str]:
    identifier = f"{data.table['policy']['python']}-manylinux_{machine}"
    return [
        sys.executable, "-m", "cibuildwheel", "--only", identifier, "--config-file", str(COPY / "pyproject.toml"),
        "--output-dir", str(out), data.projects[name],
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?")
    parser.add_argument("machine", nargs="?")
    parser.add_argument("--plan", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "release")
    arguments = parser.parse_args()
    data = load()
    if arguments.plan:
        matrix = json.dumps({"include": plan(data)})
        with arguments.plan.open("a", encoding="utf-8") as file:
            file.write(f"matrix={matrix}\n")
        print(matrix)
        return 0
    if arguments.name not in data.projects or arguments.machine not in data.machines(arguments.name):
        offered = "; ".join(f"{name}: {', '.join(data.machines(name))}" for name in data.projects)
        parser.error(
            f"a distribution and one of its machines are needed ({offered}), got {arguments.name} {arguments.machine}"
        )
    if not any(map(shutil.which, ("docker", "podman"))):
        parser.error("needs docker or podman; `nox -s wheels` builds the same without a container")
    prepare(data)
    print(
        f"{distribution(arguments.name)} for {arguments.machine} in {data.table['machines'][arguments.machine]['image']}",
        flush=True,
    )
    words = command(data, arguments.name, arguments.machine, arguments.out.resolve())
    engine = {} if shutil.which("docker") else {"CIBW_CONTAINER_ENGINE": "podman"}
    return subprocess.run(words, cwd=COPY, env=environment(data) | engine, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
