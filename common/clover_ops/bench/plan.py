"""The rows of the benchmark by name, and the sizes of each; no torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    operator: str
    maker: str  # a function of `works`
    gpu: tuple[dict[str, Any], ...]
    cpu: tuple[dict[str, Any], ...]


_SEQUENCES = ({"sequences": 1, "width": 32}, {"sequences": 16, "width": 32}, {"sequences": 64, "width": 32})
_ONE_BLOCK = ({"sequences": 1, "width": 32},)
_COMMITS = tuple({"sequences": n, "width": w} for w in (1, 8) for n in (16, 64))

# In the order of the schema; on the CPU one size of each, of some milliseconds.
CASES = (
    Case("causal_conv1d", "causal_conv1d", ({"tokens": 8192},), ({"tokens": 256},)),
    Case("preview_conv1d", "preview_conv1d", ({"sequences": 256, "width": 32},), _ONE_BLOCK),
    Case("gated_delta_net_gating", "gating", ({"tokens": 1 << 20},), ({"tokens": 4096},)),
    Case("gated_delta_rule", "commit_delta", (*_COMMITS, {"sequences": 1, "width": 8192}), ({"sequences": 1, "width": 8},)),
    Case("preview_gated_delta_rule", "preview_delta", _SEQUENCES, _ONE_BLOCK),
    Case("preview_gdn", "preview_gdn", _SEQUENCES[:2], _ONE_BLOCK),
    Case("topk_softmax", "topk_softmax", ({"tokens": 32}, {"tokens": 65536}), ({"tokens": 32},)),
    Case("block_coreset", "block_coreset", ({"tokens": 32},), ({"tokens": 32},)),
    Case("live_row_routes", "live_row_routes", ({"tokens": 32}, {"tokens": 65536}), ({"tokens": 32},)),
    Case("merge_live_rows", "merge_live_rows", ({"tokens": 8192},), ({"tokens": 128},)),
    Case(
        "fused_moe",
        "moe",
        (*({"tokens": t} for t in (1, 8, 32, 64, 256, 1024, 4096)), {"tokens": 32, "coreset": True}),
        ({"tokens": 2, "experts": 16},),
    ),
    Case("rotary_embedding", "rotary_embedding", ({"tokens": 8192},), ({"tokens": 256},)),
    Case("rearrange", "rearrange", ({"tokens": 8192},), ({"tokens": 128},)),
    Case("cast", "cast", ({"tokens": 8192},), ({"tokens": 128},)),
    Case("rms_norm_gated", "rms_norm_gated", ({"tokens": 8192},), ({"tokens": 128},)),
)  # fmt: skip


def described(case: Case, on_gpu: bool) -> list[str]:
    """The sizes of a case in words, for a list that makes no tensors."""
    return [
        ", ".join(name if value is True else f"{name} {value}" for name, value in sizes.items())
        for sizes in (case.gpu if on_gpu else case.cpu)
    ]
