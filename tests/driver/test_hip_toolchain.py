"""ci/build_device_code.py for HIP: which compiler it takes, and what it refuses before anything is compiled."""

import os
import shutil
import subprocess
import sys

import pytest

from .conftest import ROOT

pytestmark = pytest.mark.smoke


def build(tmp_path, *arguments, **variables):
    """(exit status, output) of a build into an empty folder."""
    environment = {**os.environ, **variables}
    if "DTK_ROOT" not in variables:
        environment.pop("DTK_ROOT", None)
    command = [sys.executable, "ci/build_device_code.py", "hygon", "--output", str(tmp_path / "out"), *arguments]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def write_hipcc(folder, text):
    folder.mkdir(parents=True)
    (folder / "hipcc").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "hipcc").chmod(0o755)


def test_no_compiler(tmp_path):
    status, output = build(tmp_path, PATH="/nowhere")
    assert (
        status == 1 and "hipcc is not on PATH and DTK_ROOT is not set" in output and "apt-get install hipcc" in output
    )


def test_dtk_without_a_compiler(tmp_path):
    """Named, it is used or refused: the hipcc on PATH does not stand in for it."""
    write_hipcc(tmp_path / "public", "echo HIP version: 5.2.0")
    status, output = build(tmp_path, DTK_ROOT=str(tmp_path), PATH=f"{tmp_path / 'public'}:{os.environ['PATH']}")
    assert status == 1 and f"DTK_ROOT is {tmp_path}, but there is no bin/hipcc" in output


def test_dtk_comes_before_the_path(tmp_path):
    write_hipcc(tmp_path / "dtk" / "bin", 'case "$*" in *version*) echo "HIP version: 6.1.1";; *) exit 1;; esac')
    status, output = build(tmp_path, DTK_ROOT=str(tmp_path / "dtk"))
    assert status == 1 and "DTK dtk hipcc 6.1.1" in output and "cannot compile for gfx906" in output


@pytest.mark.skipif(shutil.which("hipcc") is None, reason="there is no hipcc here")
@pytest.mark.parametrize(
    "architecture, advice", [("gfx936", "DTK has it: set DTK_ROOT"), ("gfx9999", "choose by --architectures")]
)
def test_architecture_that_the_compiler_lacks(tmp_path, architecture, advice):
    status, output = build(tmp_path, "--architectures", f"gfx906,{architecture}")
    assert status == 1 and f"cannot compile for {architecture}" in output and advice in output
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.skipif(
    not (ROOT / "build/device-code/hygon/device-code.json").is_file(), reason="no device code was built"
)
def test_architecture_that_a_configured_build_lacks(tmp_path):
    """What CMake asks for by CLOVER_ARCHITECTURES and the artifact does not have."""
    command = [
        sys.executable,
        "common/device/embed.py",
        ".",
        "build/device-code/hygon",
        str(tmp_path),
        "run IT",
        "gfx936",
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "has nothing for gfx936" in result.stderr and "need DTK (set DTK_ROOT): run IT" in result.stderr
