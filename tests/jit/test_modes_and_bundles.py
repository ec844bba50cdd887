"""CLOVER_OPS_JIT, and the bundle beside the kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from clover_ops.errors import CompileError, InvalidArgument
from clover_ops.jit import mode, prebuild, service
from clover_ops.jit.errors import DamagedArtifact, ForeignArtifact

from .conftest import KERNELS, jobs, needs_triton, python


@pytest.mark.smoke
def test_the_mode(monkeypatch: pytest.MonkeyPatch):
    assert mode.mode() == "on"
    for value in mode.MODES:
        monkeypatch.setenv("CLOVER_OPS_JIT", value)
        assert mode.mode() == value
    monkeypatch.setenv("CLOVER_OPS_JIT", "yes")
    with pytest.raises(InvalidArgument, match="off, bundle or on, got `yes`"):
        mode.mode()


@pytest.mark.smoke
def test_off_and_a_missing_bundle_refuse(monkeypatch: pytest.MonkeyPatch):
    text = jobs("cuda:90")[0].request.text()
    monkeypatch.setenv("CLOVER_OPS_JIT", "off")
    with pytest.raises(CompileError, match="vector_add: CLOVER_OPS_JIT=off"):
        service.get(text, KERNELS)
    monkeypatch.setenv("CLOVER_OPS_JIT", "bundle")
    with pytest.raises(CompileError, match="not in the bundle"):
        service.get(text, KERNELS)


def quiet(*_: object) -> None:
    pass


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin's folder, with kernels and their bundle."""
    root = tmp_path / "clover_ops_some"
    shutil.copytree(KERNELS, root / "triton")
    outcomes = prebuild.into_folder(jobs("cuda:90", folder=root / "triton"), root / "bundle", quiet)
    assert [outcome.status for outcome in outcomes] == ["compiled", "compiled"]
    return root


@needs_triton
@pytest.mark.smoke
def test_a_bundle_serves_and_what_is_up_to_date_is_skipped(plugin: Path, monkeypatch: pytest.MonkeyPatch, alone: Path):
    monkeypatch.setenv("CLOVER_OPS_JIT", "bundle")
    (job, other) = jobs("cuda:90", folder=plugin / "triton")
    path = plugin / "bundle" / f"{job.request.digest()}.clvk"
    assert service.get(job.request.text(), plugin / "triton") == path.read_bytes()
    assert not (alone / "jit").exists()
    (plugin / "bundle" / f"{'0' * 64}.clvk").write_bytes(b"old")
    path.write_bytes(path.read_bytes()[:-1])
    outcomes = prebuild.into_bundle([job, other], plugin / "bundle", quiet)
    assert [outcome.status for outcome in outcomes] == ["compiled", "up to date"]
    assert len(list((plugin / "bundle").iterdir())) == 2
    assert path.stat().st_mode & 0o777 == 0o644


@needs_triton
def test_a_wrong_bundle_is_never_loaded(plugin: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture):
    (job, other) = jobs("cuda:90", folder=plugin / "triton")
    path, foreign = (plugin / "bundle" / f"{one.request.digest()}.clvk" for one in (job, other))
    sound = path.read_bytes()
    for content, kind in (
        (bytes([*sound[:-1], sound[-1] ^ 1]), DamagedArtifact),
        (foreign.read_bytes(), ForeignArtifact),
    ):
        path.write_bytes(content)
        monkeypatch.setenv("CLOVER_OPS_JIT", "bundle")
        with pytest.raises(kind, match=str(path)):
            service.get(job.request.text(), plugin / "triton")
        monkeypatch.setenv("CLOVER_OPS_JIT", "on")
        assert service.get(job.request.text(), plugin / "triton") == sound
        assert "compiled instead" in capfd.readouterr().err


@needs_triton
def test_a_bundle_that_lacks_a_kernel_removes_nothing(tmp_path: Path):
    (tmp_path / "other.clvk").write_bytes(b"other")
    outcomes = prebuild.into_bundle([*jobs("hip:gfx936")[:1], *jobs("hip:gfx906")[:1]], tmp_path, quiet)
    assert [outcome.status for outcome in outcomes] == ["failed", "compiled"]
    assert (tmp_path / "other.clvk").read_bytes() == b"other"
    assert prebuild.into_bundle([], tmp_path, quiet) == [] and (tmp_path / "other.clvk").exists()


@needs_triton
def test_a_bundle_sweeps_what_a_killed_writer_left(plugin: Path):
    ended = subprocess.Popen(python("-c", ""))
    ended.wait()
    dead, alive = (
        plugin / "bundle" / f".{'0' * 64}.clvk.{process}.0badf00d.tmp" for process in (ended.pid, os.getpid())
    )
    dead.write_bytes(b"half")
    alive.write_bytes(b"half")
    prebuild.into_bundle(jobs("cuda:90", folder=plugin / "triton"), plugin / "bundle", quiet)
    assert not dead.exists() and alive.exists()


@needs_triton
def test_failures_stop_no_other_kernel(tmp_path: Path):
    seen = []
    wanted = [*jobs("hip:gfx936"), *jobs("hip:gfx906")]
    outcomes = prebuild.into_folder(wanted, tmp_path / "out", lambda *step: seen.append(step), 2)
    assert [outcome.status for outcome in outcomes] == ["failed", "failed", "compiled", "compiled"]
    assert [done for done, _, _ in seen] == [1, 2, 3, 4] and {total for _, total, _ in seen} == {4}
