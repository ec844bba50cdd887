"""Each code object in the installed plugin, opened; and the gate that a wheel must pass, shown failing."""

import copy
import subprocess
import sys
import zipfile
from dataclasses import replace

import check_device_code
import pytest
from check_device_code import kernel_problems, problems

from .conftest import ROOT

pytestmark = pytest.mark.smoke

KERNEL = {
    "name": "clover_portable_toy", "warp_size": 64, "arguments": [["by_value", 0, 64]], "threads": 256, "shared": 65536,
    "scratch": 0, "vgprs": 256, "sgprs": 104, "vgpr_spills": 0, "sgpr_spills": 9,
}  # fmt: skip


def test_every_object_is_there_and_within_limits(content):
    assert problems(content) == []
    assert {"gfx906"} <= {entry["architecture"] for entry in content.record["objects"]}
    assert "hipcc" in content.record["toolchain"]


def test_every_source_of_the_portable_kernels_is_compiled(content):
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "common/kernels/native").glob("*.cu")}
    assert {entry["source"] for entry in content.record["objects"]} == sources


@pytest.mark.parametrize(
    "what, value, words",
    [
        ("warp_size", 32, "waves of 32 lanes"),
        ("arguments", [["by_value", 0, 64], ["by_value", 64, 8]], "must take one argument"),
        ("arguments", [["by_value", 0, 520]], "an argument of 520 bytes"),
        ("threads", 1025, "threads 1025, at most 1024"),
        ("shared", 65537, "shared 65537, at most 65536"),
        ("vgprs", 257, "vgprs 257, at most 256"),
        ("scratch", 16, "scratch 16, at most 0"),
    ],
)
def test_limits(what, value, words):
    assert kernel_problems(KERNEL, "gfx906") == []
    (problem,) = kernel_problems({**KERNEL, what: value}, "gfx906")
    assert words in problem


def test_library_without_its_code(content):
    bare = content.library.replace(b"\x7fELF", b"\x7fXXX")
    found = problems(replace(content, library=bare))
    assert len(found) == len(content.record["objects"]) and all("does not hold it" in text for text in found)


def test_object_under_a_wrong_name(content):
    record = copy.deepcopy(content.record)
    record["objects"][0]["architecture"] = "gfx936"
    found = problems(replace(content, record=record))
    assert any("is for gfx" in text and "must be for any gfx936" in text for text in found)


def test_missing_source_and_architecture(content):
    record = copy.deepcopy(content.record)
    gone = record["objects"].pop()
    found = problems(replace(content, record=record, sources={}))
    assert f"{gone['unit']}: nothing for {gone['architecture']}" in found
    assert any("its HIP source is not in the wheel" in text for text in found)


def test_gate_on_a_wheel(content, tmp_path):
    """As a program, on a sound wheel and on one whose library lost its code."""

    def gate(name, library):
        path = tmp_path / name
        import json

        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("clover_ops_hygon/device-code.json", json.dumps(content.record))
            wheel.writestr("clover_ops_hygon/libclover_ops_hygon.so", library)
            for source, text in content.sources.items():
                wheel.writestr(f"clover_ops_hygon/hip/{source}", text)
        command = [sys.executable, ROOT / "ci" / "check_device_code.py", path]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    good, bad = gate("good.whl", content.library), gate("bad.whl", content.library[: len(content.library) // 8])
    assert good.returncode == 0 and "sound" in good.stdout, good.stdout + good.stderr
    assert bad.returncode == 1 and "does not hold it" in bad.stdout


def test_table_in_the_documentation(content):
    """Where the same compiler made this wheel; others use other registers."""
    text = (ROOT / "docs" / "hygon-code-objects.md").read_text(encoding="utf-8")
    if f"Compiled by {content.record['toolchain']};" not in text:
        pytest.skip(f"the table is of another compiler than {content.record['toolchain']}")
    assert text == check_device_code.table(content.record)
