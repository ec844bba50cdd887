"""Tuned tables: read, written, and refused with the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from clover_ops import CompileError
from clover_ops.jit import tuned

pytestmark = pytest.mark.smoke

TEXT = """clover-tuned 1
device NVIDIA H200
architecture 90
choose preview_gated_delta_rule max_seqlen<=64 N>=4 10
choose preview_gated_delta_rule 0
config preview_delta H==16 T<=64 -> BV=32 num_warps=4 num_stages=1
config preview_delta TYPE==bf16 -> BV=64 num_warps=8 num_stages=2 waves_per_eu=2
"""


def test_reads_writes_and_chooses_by_the_first_line_that_matches():
    table = tuned.parse(TEXT)
    assert table.text() == TEXT
    assert (table.device, table.architecture) == ("NVIDIA H200", "90")
    assert table.slot("preview_gated_delta_rule", {"max_seqlen": 64, "N": 4}) == 10
    assert table.slot("preview_gated_delta_rule", {"max_seqlen": 65, "N": 4}) == 0
    assert table.slot("preview_gated_delta_rule", {"N": 4}) == 0
    assert table.slot("fused_moe", {"N": 4}) is None
    assert table.config("preview_delta", {"H": 16, "T": 64}) == {"BV": 32, "num_warps": 4, "num_stages": 1}
    assert table.config("preview_delta", {"H": 8, "TYPE": "bf16"})["waves_per_eu"] == 2
    assert table.config("preview_delta", {"H": 8}) is None


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("clover-tuned 1", "clover-tuned 2", ":1:"),
        ("device NVIDIA H200\n", "", "no line `device"),
        ("architecture 90", "architecture 90\narchitecture 80", ":4:.*once each"),
        ("max_seqlen<=64", "max_seqlen=64", ":4:.*relation"),
        ("max_seqlen<=64", "max_seqlen<=x", ":4:"),
        ("max_seqlen<=64", "max_seqlen<=6.5", ":4:.*integers"),
        ("N>=4 10", "N>=4 20", ":4:.*0 to 19"),
        ("-> BV=32", "BV=32", ":6:.*->"),
        ("BV=64", "BV", ":7:.*must read"),
        ("choose preview_gated_delta_rule 0", "prefer it", ":5:.*choose or config"),
    ],
)
def test_a_wrong_line_is_refused(old: str, new: str, says: str):
    with pytest.raises(tuned.TunedTableError, match=says):
        tuned.parse(TEXT.replace(old, new, 1))


def test_where_the_users_table_is(alone: Path):
    assert tuned.user_table("nvidia", "NVIDIA H200") == alone / "tuned" / "nvidia-nvidia-h200.txt"
    assert tuned.slug("Hygon  Z100 (DCU)") == "hygon-z100-dcu"


def test_conditions_of_a_range():
    found = tuned.conditions("N<=2 max_seqlen>=65")
    assert [one.text() for one in found] == ["N<=2", "max_seqlen>=65"]
    assert tuned.conditions("") == ()
    with pytest.raises(CompileError, match="compared with an integer"):
        tuned.conditions("x==bf16")
