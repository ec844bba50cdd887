"""The portable kernels on the host, with warps of 32 and of 64 lanes.

tests/ops runs over them in a process of its own for each size, as further providers of the CPU. What tests/ops cannot
ask for on the CPU, bad index values, and the harness's own checks are programs.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import simt_build

TESTS = Path(__file__).resolve().parent.parent
BACKENDS = ("simt32", "simt64")
QUICK = ("live_row_routes", "merge_live_rows", "refusals")


def run_program(folder, name):
    done = subprocess.run([folder / name], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "\n0 failures\n" in f"\n{done.stdout}"


def run_suite(folder, backend, *arguments, coverage=None):
    """Runs cases of tests/ops over one plugin; returns pytest's last line."""
    environment = {
        **os.environ,
        "CLOVER_OPS_PLUGIN_PATH": str(folder / backend),
        "CLOVER_SIMT_BACKEND": backend,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])),
    }
    environment.pop("PYTEST_ADDOPTS", None)
    if coverage is not None:
        environment["CLOVER_SIMT_COVERAGE"] = str(coverage)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "suite_plugin", "-q", "--tb=short"]
    done = subprocess.run(
        [*command, *arguments], cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.smoke
def test_the_harness_finds_mistakes(simt_folder):
    run_program(simt_folder, "faults")


@pytest.mark.smoke
def test_bad_index_values(simt_folder):
    run_program(simt_folder, "bad_values")


@pytest.mark.smoke
@pytest.mark.parametrize("backend", BACKENDS)
def test_quick_cases(simt_folder, backend):
    last = run_suite(simt_folder, backend, "-m", "smoke", *(f"tests/ops/test_{name}.py" for name in QUICK))
    assert " passed" in last and "failed" not in last


@pytest.mark.smoke
def test_kernels_are_defined_by_the_macro():
    """So the list that a plugin keeps of its kernels is that of the sources."""
    for source in simt_build.sources():
        text = source.read_text(encoding="utf-8")
        assert "CLOVER_KERNEL(" in text
        assert "__global__" not in text, source.name


@pytest.mark.parametrize("backend", BACKENDS)
def test_smoke_cases_of_all_operators(simt_folder, backend, tmp_path):
    """And every kernel of the sources has run."""
    coverage = tmp_path / "kernels"
    last = run_suite(simt_folder, backend, "-m", "smoke", "tests/ops", coverage=coverage)
    assert " passed" in last and "failed" not in last
    last = run_suite(simt_folder, backend, "tests/simt/further_cases.py", coverage=coverage)
    assert " passed" in last and "failed" not in last and "skipped" not in last
    lines = {tuple(line.split()) for line in coverage.read_text(encoding="utf-8").splitlines()}
    exist, executed = ({name for what, name in lines if what == wanted} for wanted in ("exists", "executed"))
    assert exist
    assert not exist - executed, "kernels that no case runs"
