"""What there is to compile: a backend's device_code.toml, and one job for each source, kind of code and architecture."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class CompileError(Exception):
    pass


@dataclass(frozen=True)
class Job:
    source: str
    unit: str
    kind: str  # cubin, ptx or hsaco
    architecture: str  # 80, 90a, gfx906

    @property
    def target(self) -> str:
        if self.kind == "hsaco":
            return self.architecture
        return f"{'compute' if self.kind == 'ptx' else 'sm'}_{self.architecture}"

    @property
    def file(self) -> str:
        return f"{self.unit.replace('/', '-')}.{self.target}.{self.kind}"


def read_table(root: Path, backend: str) -> dict:
    """The backend's device_code.toml. A source in one of its folders that it does not list is an error."""
    path = root / "backends" / backend / "device_code.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if unknown := table.keys() - {"architectures", "folders", "sources"}:
        sys.exit(f"{path}: unknown key `{sorted(unknown)[0]}`")
    listed = table["sources"]
    present = {p.relative_to(root).as_posix() for folder in table["folders"] for p in (root / folder).rglob("*.cu")}
    if missing := sorted(present - listed.keys()):
        sys.exit(f"{path}: does not list {', '.join(missing)}")
    for source in listed:
        if not (root / source).is_file():
            sys.exit(f"{path}: {source} does not exist")
    return table


def unit_of(source: str) -> str:
    return f"{Path(source).parent.name}/{Path(source).stem}"


def make_jobs(table: dict, architectures: dict[str, list[str]]) -> list[Job]:
    """`architectures` has a list for each kind; a source may have lists of its own."""
    jobs = []
    for source, own in table["sources"].items():
        if unknown := own.keys() - architectures.keys():
            sys.exit(f"{source}: unknown key `{sorted(unknown)[0]}` in device_code.toml")
        for kind, general in architectures.items():
            jobs += [Job(source, unit_of(source), kind, name) for name in own.get(kind, general)]
    return jobs


def run_compiler(command: list[str], job: Job, root: Path, environment: dict[str, str] | None = None) -> str:
    """What the compiler printed; a failure is a CompileError with all of it."""
    result = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise CompileError(f"{job.file}: {Path(command[0]).name} failed\n{result.stderr or result.stdout}")
    return result.stderr + result.stdout
