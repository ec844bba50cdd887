"""kernels.toml and the sources behind it, with no Triton."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from clover_ops.jit import kernels, request, sources
from clover_ops.jit.errors import KernelTableError, MalformedRequest

pytestmark = pytest.mark.smoke


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "kernels"))


def edit(copy: Path, old: str, new: str, name: str = "kernels.toml") -> None:
    text = (copy / name).read_text()
    assert old in text
    (copy / name).write_text(text.replace(old, new, 1))


def test_reads_kernels_candidates_and_geometries(folder: Path):
    vector, scaled, *_ = kernels.read(folder)
    assert (vector.name, vector.module, vector.constexprs) == ("vector_add", "vector", ("BLOCK",))
    hip = vector.candidates(request.parse_target("hip:gfx906"))
    assert [c.text() for c in hip] == [
        "BLOCK=256 num_warps=4 num_stages=1", "BLOCK=512 num_warps=2 num_stages=1 waves_per_eu=2",
    ]  # fmt: skip
    (first, second) = vector.bundled(request.parse_target("cuda:90"))
    assert first.passed_types == ("*bf16", "*bf16", "*bf16", "i32")
    assert dict(first.constexprs) == {"BLOCK": 256} and dict(second.constexprs) == {"BLOCK": 1024}
    (one,) = scaled.bundled(request.parse_target("hip:gfx906"))
    assert dict(one.constexprs) == {"SCALE": 0.5, "DOUBLE": True, "TYPE": "bf16", "BLOCK": 128}
    assert one.block == 64


def test_source_digest_is_of_the_import_closure(folder: Path):
    assert sources.closure(folder, "vector") == ["helper", "vector"]
    content = b"".join(name + b"\0" + (folder / f"{name.decode()}.py").read_bytes() for name in (b"helper", b"vector"))
    assert sources.digest(folder, "vector") == hashlib.sha256(content).hexdigest()


def test_source_digest_follows_helpers_and_no_one_else(copy: Path):
    before = sources.digest(copy, "vector")
    (copy / "unrelated.py").write_text("import triton\n")
    assert sources.digest(copy, "vector") == before
    edit(copy, "* scale", "* scale * scale", "helper.py")
    assert sources.digest(copy, "vector") != before


@pytest.mark.parametrize(
    "line, says",
    [
        ("import numpy", "Triton and one another alone, not numpy"),
        ("import helper", "from .helper import"),
        ("from .absent import x", "no absent.py"),
        ("from ..up import x", "not from above"),
    ],
)
def test_imports_that_would_go_unseen_are_refused(copy: Path, line: str, says: str):
    edit(copy, "import triton\n", f"import triton\n{line}\n", "vector.py")
    with pytest.raises(KernelTableError, match=says) as failure:
        sources.digest(copy, "vector")
    assert "vector.py:4" in str(failure.value)


@pytest.mark.parametrize(
    "old, new, says",
    [
        ('operator = "cast"', 'operator = "cast"\nspeed = 1', r"kernels.toml:6: unknown key `speed`"),
        ('operator = "cast"', "", "lacks `operator`"),
        ("configs.hip", "configs.vulkan", "unknown key `vulkan`"),
        ('"i64"]]', '"int"]]', "`stride` must be one of"),
        ("num_warps = 8", "num_warps = 0", "positive integer"),
        ("num_warps = 8, ", "", "needs `num_warps`"),
        ('x = "bf16"', 'x = "half"', "bf16, fp16 or fp32"),
        ("stride = 1 }", "stride = 4 }", "equal to"),
        ("stride = 1 }", "stripe = 1 }", "no argument `stripe`"),
        ("{ SCALE = 0.5,", "{ SKALE = 0.5,", "no constexpr `SKALE`"),
        ('name = "scaled_add"', 'name = "vector_add"', "two kernels"),
        ('module = "vector"', 'module = "../vector"', "identifier"),
        ('["x", "*x"], ["y", "*x"]', '["y", "*x"], ["x", "*x"]', "vector.py:10: vector_add has the args x, y"),
        ('constexprs = ["BLOCK"]', 'constexprs = ["BLOCK", "MORE"]', "has the constexprs BLOCK; kernels.toml lists"),
        ('function = "vector_add"', 'function = "vector_sub"', "no function vector_sub"),
        ("[[kernel]]", "[[kernel", "kernels.toml"),
        ("BLOCK = 256", f"BLOCK = {'1' * 5000}", "kernels.toml"),
        ("BLOCK = 256", f"BLOCK = 0x{'1' * 5000}", "at most 64 bits"),
        ("[[kernel]]", "speed = 1\n[[kernel]]", "unknown key `speed`"),
    ],
)
def test_a_wrong_table_is_refused_with_the_place(copy: Path, old: str, new: str, says: str):
    edit(copy, old, new)
    with pytest.raises(KernelTableError, match=says):
        kernels.read(copy)


def test_a_function_without_jit_is_refused(copy: Path):
    edit(copy, "@triton.jit\ndef vector_add", "def vector_add", "vector.py")
    with pytest.raises(KernelTableError, match="not decorated"):
        kernels.read(copy)


def test_requests_need_every_constexpr_and_no_other(folder: Path):
    kernel = kernels.find("scaled_add", given=folder)
    target = request.parse_target("cuda:90")
    (config,) = kernel.candidates(target)
    with pytest.raises(MalformedRequest, match=r"no value for the constexpr.* DOUBLE, TYPE, BLOCK"):
        kernel.request(target, config, {"SCALE": 1.0}, "bf16")
    values = {"SCALE": 1.0, "DOUBLE": False, "TYPE": "bf16", "BLOCK": 64}
    with pytest.raises(MalformedRequest, match="no constexpr WIDTH"):
        kernel.request(target, config, {**values, "WIDTH": 1}, "bf16")
    with pytest.raises(MalformedRequest, match="data dtype is missing"):
        kernel.request(target, config, values)


def test_a_kernel_of_other_sources_is_not_found(folder: Path):
    with pytest.raises(KernelTableError, match="another version"):
        kernels.find("vector_add", "0" * 64, folder)
    with pytest.raises(KernelTableError, match="no kernel 'nothing'"):
        kernels.find("nothing", given=folder)


def test_the_targets_of_a_bundle(tmp_path: Path):
    path = tmp_path / "bundle.toml"
    path.write_text('targets = ["cuda:80", "hip:gfx906"]\n')
    assert kernels.bundle_targets(path) == ("cuda:80", "hip:gfx906")
    for text, says in (('target = ["cuda:80"]', "unknown key `target`"), ("targets = []", "at least one"),
                       ('targets = ["sm_80"]', "must read like"), ("targets = [", "bundle.toml")):  # fmt: skip
        path.write_text(text)
        with pytest.raises(KernelTableError, match=says):
            kernels.bundle_targets(path)
