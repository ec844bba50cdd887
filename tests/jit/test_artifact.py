"""The file of a compiled kernel: every truncation and flipped bit is found, and what is foreign is named."""

from __future__ import annotations

import hashlib
import struct

import pytest
from clover_ops.jit import artifact
from clover_ops.jit.errors import ArtifactError, DamagedArtifact, ForeignArtifact, TruncatedArtifact
from clover_ops.jit.request import Argument, Request, Target

pytestmark = pytest.mark.smoke

REQUEST = Request("k", "a" * 64, Target("hip", "gfx906", 64, "xnack-"), (Argument("x", "*bf16"), Argument("n", "i32", "1")),
                  (("B", 4),), 4, 1)  # fmt: skip
HEADER = {
    "architecture": "gfx906", "arguments": "*bf16", "binary_kind": "hsaco",
    "extra_arguments": "global_scratch profile_scratch", "features": "xnack-", "global_scratch_alignment": "1",
    "global_scratch_bytes": "0", "identity": REQUEST.identity("3.9.0", "x"), "kernel": "k", "num_stages": "1",
    "num_warps": "4", "profile_scratch_alignment": "1", "profile_scratch_bytes": "0", "request": REQUEST.digest(),
    "shared_bytes": "512", "source": "a" * 64, "symbol": "k", "target": "hip:gfx906:64", "triton": "3.9.0",
    "warp_size": "64",
}  # fmt: skip
DATA = artifact.dump(artifact.build(HEADER, b"\x7fELF" + bytes(range(60))))


def test_layout_as_the_contract_says():
    assert DATA[:8] == b"CLOVERJ1"
    (size,) = struct.unpack_from("<I", DATA, 8)
    lines = DATA[12 : 12 + size].decode()
    assert lines == "".join(f"{key}: {HEADER[key]}\n" for key in sorted(HEADER))
    assert struct.unpack_from("<Q", DATA, 12 + size) == (64,)
    assert DATA[20 + size : 24 + size] == b"\x7fELF"
    assert DATA[-32:] == hashlib.sha256(DATA[:-32]).digest()


def test_reads_what_it_wrote():
    found = artifact.load(DATA)
    assert dict(found.header) == HEADER
    assert found.block == 256
    assert found.arguments == ("*bf16",)
    artifact.check_request(found, REQUEST)


def test_every_truncation_is_told():
    for size in range(len(DATA)):
        with pytest.raises(TruncatedArtifact, match=rf"\b{size} bytes"):
            artifact.load(DATA[:size])


def test_every_flipped_bit_is_found():
    for at in range(len(DATA)):
        for bit in range(8):
            flipped = bytearray(DATA)
            flipped[at] ^= 1 << bit
            with pytest.raises(ArtifactError):
                artifact.load(bytes(flipped))


def test_other_damage_is_told_apart_from_truncation():
    flipped = bytearray(DATA)
    flipped[-40] ^= 1
    for data in (bytes(flipped), DATA + b"\0", b"ELF" + DATA):
        with pytest.raises(DamagedArtifact):
            artifact.load(data)


@pytest.mark.parametrize(
    "key, value",
    [
        ("architecture", "gfx90a"), ("target", "hip:gfx906:32"), ("features", "xnack+"), ("kernel", "other"),
        ("arguments", "*bf16 i32"), ("request", "0" * 64), ("warp_size", "32"), ("binary_kind", "cubin"),
        ("source", "b" * 64),
    ],
)  # fmt: skip
def test_a_foreign_artifact_is_named(key: str, value: str):
    found = artifact.load(artifact.dump(artifact.build({**HEADER, key: value}, b"x")))
    with pytest.raises(ForeignArtifact, match=key):
        artifact.check_request(found, REQUEST)


def test_a_header_with_other_keys_is_not_written():
    with pytest.raises(ArtifactError, match="symbol"):
        artifact.build({key: value for key, value in HEADER.items() if key != "symbol"}, b"")
    with pytest.raises(ArtifactError, match="line break"):
        artifact.build({**HEADER, "symbol": "a\nb"}, b"")


@pytest.mark.parametrize(
    "old, new", [("num_warps: 4", "num_warps: x"), ("symbol: k\n", ""), ("kernel: k", "lernel: k")]
)
def test_a_wrong_header_under_a_right_checksum_is_refused(old: str, new: str):
    (size,) = struct.unpack_from("<I", DATA, 8)
    header = DATA[12 : 12 + size].decode().replace(old, new, 1).encode()
    body = DATA[:8] + struct.pack("<I", len(header)) + header + DATA[12 + size : -32]
    with pytest.raises(DamagedArtifact, match=r"header|number"):
        artifact.load(body + hashlib.sha256(body).digest())
