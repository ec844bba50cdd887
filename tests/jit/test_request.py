"""Canonical requests: golden texts and digests, which C++ must find too; and the refusal of everything else."""

from __future__ import annotations

import pytest
from clover_ops.jit.errors import MalformedRequest
from clover_ops.jit.request import Argument, Request, Target, parse, parse_target

pytestmark = pytest.mark.smoke

SOURCE = "0123456789abcdef" * 4
TEXT = f"""clover-jit 1
kernel preview_delta
source {SOURCE}
target hip:gfx906:64
features sramecc+:xnack-
arg q *bf16:16
arg g *fp32
arg T i32:1
arg n i64:16
arg scale fp32
constexpr H 16
constexpr BETA true
constexpr EPS 1e-06
constexpr TYPE bf16
num_warps 4
num_stages 1
option matrix_instr_nonkdim 16
option waves_per_eu 2
"""


def build() -> Request:
    return Request(
        "preview_delta", SOURCE, Target("hip", "gfx906", 64, "sramecc+:xnack-"),
        (Argument("q", "*bf16", "16"), Argument("g", "*fp32"), Argument("T", "i32", "1"), Argument("n", "i64", "16"),
         Argument("scale", "fp32")),
        (("H", 16), ("BETA", True), ("EPS", 1e-6), ("TYPE", "bf16")), 4, 1,
        (("matrix_instr_nonkdim", "16"), ("waves_per_eu", "2")),
    )  # fmt: skip


def test_golden_text_digest_and_identity():
    request = build()
    assert request.text() == TEXT
    assert parse(TEXT) == request
    # By sha256sum over the text, and over it with the two lines of the toolchain.
    assert request.digest() == "24447efaf61a9d02735463d5b2d196ac2dcb647d60d32c25f982b884be0dbefd"
    assert request.identity("3.9.0", "feed") == "9027f101f41f89224fd14f6607d18351bbb3d2dc2a6744d4131231f8f4f9d3ec"
    assert request.identity("3.9.0", "") != request.identity("3.9.0", "feed") != request.identity("3.9.1", "feed")


def test_features_may_be_empty_and_the_line_stays():
    text = TEXT.replace("features sramecc+:xnack-", "features ")
    assert parse(text).target.features == ""
    assert parse(text).text() == text
    assert parse(text).digest() != parse(TEXT).digest()


def test_launch_geometry_and_passed_arguments():
    request = build()
    assert request.block == 256
    assert request.passed_types == ("*bf16", "*fp32", "i64", "fp32")


@pytest.mark.parametrize(
    "old, new, line",
    [
        ("clover-jit 1", "clover-jit 2", 1),
        ("kernel preview_delta", "kernel preview delta", 2),
        ("kernel preview_delta", "kernel 1st", 2),
        (f"source {SOURCE}", f"source {SOURCE[:-1]}", 3),
        (f"source {SOURCE}", f"source {SOURCE.upper()}", 3),
        ("target hip:gfx906:64", "target hip:gfx906", 4),
        ("target hip:gfx906:64", "target rocm:gfx906:64", 4),
        ("target hip:gfx906:64", "target cuda:90:64", 4),
        ("target hip:gfx906:64", "target hip:90:64", 4),
        ("target hip:gfx906:64", f"target hip:gfx906:{'6' * 5000}", 4),
        ("target hip:gfx906:64", "target hip:gfx906:6²", 4),
        ("features sramecc+:xnack-\n", "", 5),
        ("features sramecc+:xnack-", "features sramecc", 5),
        ("features sramecc+:xnack-", "features", 5),
        ("arg q *bf16:16", "arg q *bf17:16", 6),
        ("arg q *bf16:16", "arg q *bf16:1", 6),
        ("arg q *bf16:16", "arg q  *bf16:16", 6),
        ("arg g *fp32", "arg g *fp32:", 7),
        ("arg T i32:1", "arg T i32:8", 8),
        ("arg scale fp32", "arg scale fp32:16", 10),
        ("constexpr H 16", "constexpr H 016", 11),
        ("constexpr H 16", "constexpr H +16", 11),
        ("constexpr H 16", f"constexpr H {'1' * 5000}", 11),
        ("constexpr H 16", f"constexpr H {2**64}", 11),
        ("constexpr H 16", f"constexpr H {-(2**63) - 1}", 11),
        ("constexpr BETA true", "constexpr BETA True", 12),
        ("constexpr EPS 1e-06", "constexpr EPS 1e-6", 13),
        ("constexpr EPS 1e-06", "constexpr EPS nan", 13),
        ("constexpr TYPE bf16", "constexpr TYPE float", 14),
        ("num_warps 4", "num_warps 0", 15),
        ("num_warps 4", "warps 4", 15),
        ("num_stages 1\n", "", 16),
        ("option waves_per_eu 2", "option waves_per_eu", 18),
        ("option waves_per_eu 2", "constexpr W 2", 18),
    ],
)
def test_malformed_text_is_refused_with_its_line(old: str, new: str, line: int):
    assert old in TEXT
    with pytest.raises(MalformedRequest, match=rf"line {line}\b") as caught:
        parse(TEXT.replace(old, new, 1))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("num_warps 4", "num_warps 3", "power of two"),
        ("num_warps 4", "num_warps 32", "2048 threads"),
        ("num_stages 1", "num_stages 99", "1 to 64"),
        ("arg g *fp32", "arg q *fp32", "given twice"),
        ("option matrix_instr_nonkdim 16\noption waves_per_eu 2", "option b 1\noption a 1", "sorted"),
        ("option waves_per_eu 2", "option num_warps 8", "num_warps has a line of its own"),
        (TEXT[-8:], "", "does not end|takes"),
    ],
)
def test_what_makes_no_sense_is_refused(old: str, new: str, says: str):
    with pytest.raises(MalformedRequest, match=says):
        parse(TEXT.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "\n", "clover-jit 1\n", TEXT + "\n", TEXT[:-1], TEXT.replace("\n", "\r\n")])
def test_other_texts_are_refused(text: str):
    with pytest.raises(MalformedRequest):
        parse(text)


@pytest.mark.parametrize(
    "text, target",
    [
        ("cuda:90", Target("cuda", "90", 32)),
        ("hip:gfx906", Target("hip", "gfx906", 64)),
        ("hip:gfx936", Target("hip", "gfx936", 64)),
        ("hip:gfx90a:64", Target("hip", "gfx90a", 64)),
        ("hip:gfx1100", Target("hip", "gfx1100", 32)),
        ("hip:gfx906:sramecc+:xnack-", Target("hip", "gfx906", 64, "sramecc+:xnack-")),
    ],
)
def test_targets_as_people_and_drivers_write_them(text: str, target: Target):
    assert parse_target(text) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cuda",
        "cuda:",
        "cuda:sm_90",
        "hip:906",
        "cuda:90:64",
        "hip:gfx906:64:32",
        "cpu:x86",
        "cuda:90:²",
        "cuda:90:٣٢",
        f"hip:gfx906:{'6' * 5000}",
        f"cuda:{'9' * 5000}",
    ],
)
def test_targets_that_mean_nothing(text: str):
    with pytest.raises(MalformedRequest):
        parse_target(text)
