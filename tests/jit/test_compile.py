"""Compiling with no device, for both families; and what recorded compiles say about launching, where Triton is not."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from clover_ops.errors import CompileError
from clover_ops.jit import artifact, kernels, prebuild, request, service, toolchain
from clover_ops.jit.errors import ToolchainError
from clover_ops.jit.worker import Worker

from .conftest import KERNELS, jobs, needs_triton, python

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
ROWS = [
    pytest.param(row, id=f"{record['target']}-{row['header']['kernel']}-{at}")
    for record in (json.loads(path.read_text()) for path in RECORDED)
    for at, row in enumerate(record["artifacts"])
]
TARGETS = ("cuda:80", "cuda:90", "cuda:100", "cuda:120", "hip:gfx906", "hip:gfx90a", "hip:gfx942", "hip:gfx950")


def make(job: prebuild.Job) -> artifact.Artifact:
    with Worker() as worker:
        return artifact.load(worker.compile(job.request, job.kernel, toolchain.toolchain()))


@pytest.mark.smoke
def test_there_are_records_of_both_families():
    assert [path.name for path in RECORDED] == ["cuda-90.json", "hip-gfx906.json", "hip-gfx90a.json"]
    assert len(ROWS) >= 10


@pytest.mark.smoke
@pytest.mark.parametrize("row", ROWS)
def test_recorded_launch_geometry_arguments_and_scratch(row: dict):
    asked = request.parse(row["request"])
    header = row["header"]
    found = artifact.build({**header, "identity": "0" * 64}, b"")
    artifact.check_request(found, asked)
    warp = 32 if asked.target.backend == "cuda" else 64
    assert found.block == asked.num_warps * warp == asked.block
    assert list(found.arguments) == [a.type for a in asked.arguments if a.specialisation != "1"]
    assert header["extra_arguments"] == "global_scratch profile_scratch"
    assert header["symbol"] == asked.kernel
    assert header["binary_kind"] == ("cubin" if asked.target.backend == "cuda" else "hsaco")
    asks_scratch = asked.kernel == "descriptor_copy" and asked.target.backend == "cuda"
    assert (int(header["global_scratch_bytes"]) > 0) == asks_scratch
    assert int(header["global_scratch_alignment"]) >= (64 if asks_scratch else 1)
    assert row["bytes"] > 1000


@pytest.mark.smoke
@pytest.mark.parametrize("row", ROWS)
def test_recorded_sources_are_todays(row: dict):
    """Else `python tests/jit/recorded/renew.py` was forgotten."""
    assert kernels.find(request.parse(row["request"]).kernel, given=KERNELS).source() == row["header"]["source"]


@needs_triton
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_compiles_are_what_was_recorded(path: Path):
    record = json.loads(path.read_text())
    if record["triton"] != toolchain.toolchain().version:
        pytest.skip(f"recorded with Triton {record['triton']}")
    with Worker() as worker:
        for row in record["artifacts"]:
            asked = request.parse(row["request"])
            kernel = kernels.find(asked.kernel, asked.source, KERNELS)
            found = artifact.load(worker.compile(asked, kernel, toolchain.toolchain()))
            assert {key: value for key, value in found.header if key != "identity"} == row["header"]
            assert hashlib.sha256(found.binary).hexdigest() == row["binary"]


@needs_triton
@pytest.mark.parametrize("target", [pytest.param(t, marks=pytest.mark.smoke) if "90" in t else t for t in TARGETS])
def test_every_target_compiles_with_no_device(target: str):
    first, *_ = jobs(target)
    found = make(first)
    artifact.check_request(found, first.request)
    assert found.binary[:4] == b"\x7fELF"


@needs_triton
@pytest.mark.smoke
@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx906"])
def test_two_compiles_are_the_same_bytes(target: str, tmp_path: Path, folder: Path):
    """From processes of their own, in other folders, with other settings of Triton around them."""
    import shutil

    elsewhere = Path(shutil.copytree(folder, tmp_path / "a rather long path" / "of sources"))
    (job,) = jobs(target, "scaled_add")
    (moved,) = jobs(target, "scaled_add", elsewhere)
    assert moved.request == job.request
    one = make(job)
    before = dict(os.environ)
    os.environ.update(
        TRITON_DISABLE_LINE_INFO="0", TRITON_DEFAULT_FP_FUSION="0", TRITON_DEBUG="1", DISABLE_LLVM_OPT="1"
    )
    try:
        other = make(moved)
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert artifact.dump(one) == artifact.dump(other)


@needs_triton
@pytest.mark.smoke
@pytest.mark.parametrize("target, says", [("hip:gfx936", "Triton of DTK"), ("hip:gfx928", "Triton of DTK")])
def test_an_unknown_target_is_refused_with_what_would_know_it(target: str, says: str):
    with pytest.raises(ToolchainError, match=rf"does not know {target}.*{says}"):
        make(jobs(target)[0])


@needs_triton
def test_features_count_and_do_not_reach_the_compiler():
    plain, *_ = jobs("hip:gfx906")
    featured, *_ = jobs("hip:gfx906:sramecc+:xnack-")
    assert plain.request.digest() != featured.request.digest()
    one, other = make(plain), make(featured)
    assert other["features"] == "sramecc+:xnack-" and one.binary == other.binary


def edited(text: str, old: str, new: str) -> request.Request:
    assert old in text
    return request.parse(text.replace(old, new))


@needs_triton
def test_an_option_that_triton_lacks_or_that_is_not_the_kernels_is_refused():
    """Triton itself overlooks the one, and takes the other."""
    job, *_ = jobs("cuda:90")
    asked = request.parse(job.request.text() + "option waves_per_eu 2\n")
    with pytest.raises(CompileError, match="no option 'waves_per_eu'"):
        make(prebuild.Job(job.kernel, asked))
    for option in ("num_ctas 2", "ir_override /tmp/other.ptx", "extern_libs x"):
        asked = request.parse(f"{job.request.text()}option {option}\n")
        with pytest.raises(CompileError, match=f"no option '{option.split()[0]}'"):
            make(prebuild.Job(job.kernel, asked))


@needs_triton
def test_a_kernel_that_does_not_compile_says_why():
    job, *_ = jobs("cuda:90")
    asked = edited(job.request.text(), "constexpr BLOCK 256", "constexpr BLOCK 250")
    with pytest.raises(CompileError, match=r"vector_add does not compile for cuda:90:32.* at 2:49: .*power of 2"):
        make(prebuild.Job(job.kernel, asked))


@needs_triton
def test_a_helper_that_does_not_compile_says_why(tmp_path: Path, folder: Path):
    """Triton tells the reason in the error's cause."""
    import shutil

    copy = Path(shutil.copytree(folder, tmp_path / "kernels"))
    text = (copy / "helper.py").read_text()
    (copy / "helper.py").write_text(
        text.replace("a.to(tl.float32)", "tl.dot(a[:, None], a[None, :], input_precision='no')")
    )
    with pytest.raises(CompileError, match=r"scaled_add does not compile for hip:gfx906:64.* at 4:.*input_precision"):
        make(jobs("hip:gfx906", "scaled_add", copy)[0])


@needs_triton
def test_more_shared_memory_than_there_is_is_refused(tmp_path: Path):
    (tmp_path / "big.py").write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        "def big(x, out, N: tl.constexpr):\n"
        "    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]\n"
        "    a = tl.load(x + i)\n"
        "    tl.store(out + i, tl.dot(a, tl.trans(a), input_precision='ieee'))\n"
    )
    (tmp_path / "kernels.toml").write_text(
        '[[kernel]]\nname = "big"\nmodule = "big"\nfunction = "big"\noperator = "cast"\n'
        'args = [["x", "*fp32"], ["out", "*fp32"]]\nconstexprs = ["N"]\n'
        "configs.hip = [{ N = 256, num_warps = 16, num_stages = 1 }]\n[[kernel.bundle]]\n"
    )
    (job,) = jobs("hip:gfx906", "big", tmp_path)
    with pytest.raises(CompileError, match=r"needs \d+ bytes of shared memory; hip:gfx906:64 gives a block 65536"):
        make(job)


@needs_triton
@pytest.mark.smoke
def test_the_service_compiles_once_and_then_reads(alone: Path):
    job, *_ = jobs("cuda:90")
    data = service.get(job.request.text(), KERNELS)
    (path,) = (alone / "jit").glob("*.clvk")
    assert path.read_bytes() == data
    stamp = path.stat().st_mtime_ns
    assert service.get(job.request.text(), KERNELS) == data and path.stat().st_mtime_ns == stamp


@pytest.mark.smoke
def test_importing_the_package_or_the_front_does_not_import_triton():
    code = (
        "import sys, clover_ops; assert not [m for m in sys.modules if m.startswith('clover_ops.jit')]; "
        "from clover_ops.jit import service, prebuild, tuned, autotune; "
        "assert not {'triton', 'torch', 'numpy', 'click'} & set(sys.modules)"
    )
    subprocess.run(python("-c", code), check=True)
