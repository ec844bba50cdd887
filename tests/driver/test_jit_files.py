"""common/jit reads and writes what clover_ops.jit does: digests, requests, artifacts."""

import hashlib
import subprocess

import pytest
from clover_ops.jit import artifact as artifacts
from clover_ops.jit.request import Argument, Request, parse_target

from .conftest import ROOT

pytestmark = pytest.mark.smoke

SOURCES = ("device/sha256", "jit/artifact", "jit/request")
REQUEST = "f" * 64


@pytest.fixture(scope="module")
def jit_files(compiler):
    sources = [str(ROOT / "common" / f"{name}.cpp") for name in SOURCES]
    program = compiler("jit_files", "native/jit_files.cpp", *sources, f"-I{ROOT}", f"-I{ROOT / 'common' / 'include'}")

    def lines(*arguments):
        command = [str(program), *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return result.stdout.splitlines()

    return lines


def example(**changes):
    header = {key: "1" if key in artifacts._NUMBERS else f"a {key}" for key in artifacts.KEYS}
    return artifacts.build({**header, "request": REQUEST, "features": "", **changes}, bytes(range(256)) * 3)


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 100_003])
def test_sha256(jit_files, tmp_path, size):
    data = bytes(i * 37 % 251 for i in range(size))
    (tmp_path / "data").write_bytes(data)
    assert jit_files("sha256", tmp_path / "data") == [hashlib.sha256(data).hexdigest()]


def test_request(jit_files):
    request = Request(
        "preview_delta",
        "a" * 64,
        parse_target("hip:gfx906:sramecc+:xnack-"),
        (
            Argument("q", "*bf16", "16"),
            Argument("g", "*fp32"),
            Argument("T", "i32", "1"),
            Argument("stride", "i64", "16"),
        ),
        (("H", 16), ("FINAL", True), ("scale", 0.5), ("DTYPE", "bf16")),
        2,
        3,
        (("matrix_instr_nonkdim", "16"), ("waves_per_eu", "2")),
    )
    assert jit_files("request") == [*request.text().splitlines(), request.digest(), " ".join(request.passed_types)]


def test_artifact(jit_files, tmp_path):
    made = example()
    (tmp_path / "a.clvk").write_bytes(artifacts.dump(made))
    header = [f"{key}: {value}" for key, value in made.header]
    assert jit_files("artifact", tmp_path / "a.clvk", REQUEST) == [*header, hashlib.sha256(made.binary).hexdigest()]


def test_every_truncation_is_told(jit_files, tmp_path):
    data = artifacts.dump(example())
    for size in (0, 7, 8, 11, 12, 100, len(data) // 2, len(data) - 33, len(data) - 1):
        (tmp_path / "a.clvk").write_bytes(data[:size])
        problem, status, message = jit_files("artifact", tmp_path / "a.clvk", REQUEST)
        assert (problem, status) == ("truncated", "5"), size
        assert f"{size} bytes" in message


def checksummed(body):
    return body + hashlib.sha256(body).digest()


def damages(data):
    body = data[:-32]
    flipped = bytearray(data)
    flipped[-100] ^= 1
    yield "checksum", bytes(flipped)
    yield "checksum", data + b"more"
    yield "does not begin with CLOVERJ1", b"NOTCLOVR" + data[8:]
    yield "num_warps must be a number", checksummed(body.replace(b"num_warps: 1\n", b"num_warps: x\n"))
    yield "go on with `kernel: `", checksummed(body.replace(b"\nkernel: ", b"\nkornel: "))


def test_damage_is_told(jit_files, tmp_path):
    for reason, data in damages(artifacts.dump(example())):
        (tmp_path / "a.clvk").write_bytes(data)
        problem, status, message = jit_files("artifact", tmp_path / "a.clvk", REQUEST)
        assert (problem, status) == ("damaged", "5"), reason
        assert reason in message


def test_a_length_beyond_memory_is_a_truncation(jit_files, tmp_path):
    data = bytearray(artifacts.dump(example()))
    at = 12 + int.from_bytes(data[8:12], "little")
    data[at : at + 8] = b"\xff" * 8
    (tmp_path / "a.clvk").write_bytes(data)
    assert jit_files("artifact", tmp_path / "a.clvk", REQUEST)[0] == "truncated"


def test_another_request(jit_files, tmp_path):
    (tmp_path / "a.clvk").write_bytes(artifacts.dump(example(request="e" * 64)))
    problem, _, message = jit_files("artifact", tmp_path / "a.clvk", REQUEST)
    assert problem == "foreign"
    assert "e" * 64 in message and REQUEST in message
