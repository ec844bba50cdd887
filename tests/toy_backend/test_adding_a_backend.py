"""Follows docs/adding-a-backend.md: its files, in a copy of the tree with nothing else edited, make a backend that works.

Builds a wheel, so it is no smoke test; `nox -s test-toy-backend` runs it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-a-backend.md"
REASON = "there is no toy device: CLOVER_TOY_DEVICE is not 1"
sys.path.insert(0, str(ROOT / "ci"))
scikit_build_core = pytest.importorskip(
    "scikit_build_core", reason="`nox -s test-toy-backend` installs what builds a wheel"
)

from release import projects, tree  # noqa: E402


def blocks(kind: str) -> list[tuple[str, str]]:
    """(name, text) of the page's blocks whose first line ends with `kind=name`."""
    pattern = rf"^```\w+ {kind}=(\S+)\n(.*?)^```$"
    return re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(*command: object, cwd: Path, code: int = 0, **variables: str) -> str:
    words = [str(word) for word in command]
    env = {k: v for k, v in os.environ.items() if k != "CLOVER_TOY_DEVICE"} | variables
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, (
        f"{' '.join(words)} exited with {done.returncode}:\n{done.stdout[-5000:]}{done.stderr[-3000:]}"
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    copy = tmp_path_factory.mktemp("toy") / "checkout"
    tree.export(copy, ROOT)
    before = {name: (copy / name).read_bytes() for name in tree.tracked(ROOT) if (copy / name).is_file()}
    files = blocks("file")
    assert len(files) == 8
    for name, text in files:
        assert name.startswith("backends/toy/")
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(text, encoding="utf-8")
    for folder, script in blocks("run"):
        run("sh", "-ec", script, cwd=copy / folder)
    assert {name: (copy / name).read_bytes() for name in before} == before, "something else was edited"
    return copy


@pytest.fixture(scope="module")
def python(checkout, tmp_path_factory):
    """An interpreter that has this environment's packages and the toy's wheel."""
    home = tmp_path_factory.mktemp("toy-env")
    wheels = home / "wheels"
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
        "--wheel-dir", wheels,        checkout / "backends" / "toy", cwd=checkout,
    )  # fmt: skip
    venv.create(home / "env", with_pip=False, symlinks=True)
    (site,) = (home / "env").glob("lib/python*/site-packages")
    outer = [path for path in sys.path if path.endswith("-packages")]
    (site / "outer.pth").write_text("\n".join(outer) + "\n", encoding="utf-8")
    (wheel,) = wheels.glob("clover_ops_toy-*.whl")
    binary = home / "env" / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        binary,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=home,
    )
    return binary


def test_the_release_finds_it(checkout):
    assert projects.find(checkout)["toy"] == "backends/toy"


def test_it_is_discovered(python, tmp_path):
    def state(**variables):
        done = subprocess.run(
            [str(python), "-m", "clover_ops", "doctor", "--json"], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={k: v for k, v in os.environ.items() if k != "CLOVER_TOY_DEVICE"} | variables,
        )  # fmt: skip
        return next(plugin for plugin in json.loads(done.stdout)["plugins"] if plugin["name"] == "toy")

    assert state(CLOVER_TOY_DEVICE="1")["status"] == "active"
    inactive = state()
    assert inactive["status"] == "inactive" and REASON in inactive["reason"]
    assert inactive["provides"] == [{"operator": "live_row_routes", "slot": 5, "name": "plain"}]


def test_it_runs_its_operator(python, tmp_path):
    script = """
import numpy as np, clover_ops
ids = np.arange(6, dtype=np.int32).reshape(3, 2)
weights = np.full((3, 2), 0.5, np.float32)
out = clover_ops.live_row_routes(ids, weights, np.array([True, False, True]))
print([np.asarray(o).tolist() for o in out], [(p.backend, p.slot) for p in clover_ops.providers("live_row_routes")])
"""
    said = run(python, "-c", script, cwd=tmp_path, CLOVER_TOY_DEVICE="1", CLOVER_OPS_BACKENDS="toy")
    assert "[[0, 1], [-1, -1], [4, 5]]" in said and "[0, 2, -1], [2]" in said and "('toy', 5)" in said


def test_it_passes_the_shared_suite(python, checkout):
    said = run(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ops/test_live_row_routes.py", cwd=checkout,
        CLOVER_TOY_DEVICE="1", CLOVER_OPS_BACKENDS="toy",
    )  # fmt: skip
    row = re.search(r"^live_row_routes +toy +(\d+) +(\d+)", said, re.MULTILINE)
    assert row, said
    assert int(row[1]) >= 20 and int(row[2]) == 0, said


def test_it_is_skipped_by_name_when_inactive(python, checkout):
    said = run(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ops/test_live_row_routes.py", cwd=checkout,
        CLOVER_OPS_BACKENDS="toy",
    )  # fmt: skip
    assert f"backend toy is inactive: {REASON}" in said
