"""What one eager call costs on the host: `python -m tests.benchmarks.host_cost [--json FILE]`.

Tensors are tiny, so nearly all of the time is the call itself. The smallest of many repetitions is reported: on a machine with
other work the mean measures the other work.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import clover_ops
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def best_us(call: Callable[[], object], calls: int = 200, repetitions: int = 100) -> float:
    call()
    best = float("inf")
    for _ in range(repetitions):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - begin) / calls)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
    return best * 1e6


def cases() -> dict[str, Callable[[], object]]:
    def floats(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device=DEVICE)

    cu_seqlens = torch.tensor([0, 1], dtype=torch.int32, device=DEVICE)
    slot = torch.tensor([0], dtype=torch.int32, device=DEVICE)
    wide, narrow = floats(4, 4), torch.empty(4, 4, dtype=torch.bfloat16, device=DEVICE)
    x, weight, pool, y = floats(1, 8), floats(8, 4), floats(2, 8, 3), floats(1, 8)
    q, v, g, state, o = floats(1, 1, 64), floats(1, 1, 64), floats(1, 1), floats(2, 1, 64, 64), floats(1, 1, 64)
    logits = floats(1, 16)
    return {
        "cast (2 tensors)": lambda: clover_ops.cast(wide, narrow),
        "topk_softmax (3 tensors, functional)": lambda: clover_ops.topk_softmax(logits, 4),
        "causal_conv1d (8 tensors, out=)": lambda: clover_ops.causal_conv1d(
            x, weight, None, pool, cu_seqlens, slot, slot, out=y
        ),
        "causal_conv1d (8 tensors, functional)": lambda: clover_ops.causal_conv1d(
            x, weight, None, pool, cu_seqlens, slot, slot
        ),
        "gated_delta_rule (10 tensors, functional)": lambda: clover_ops.gated_delta_rule(
            q, q, v, g, g, state, cu_seqlens, slot, slot
        ),
        "torch.ops.clover.cast": lambda: torch.ops.clover.cast(wide, narrow),
        "torch.ops.clover.causal_conv1d": lambda: torch.ops.clover.causal_conv1d(
            x, weight, None, pool, cu_seqlens, slot, slot, y=y
        ),
        "for comparison: torch.add (out=)": lambda: torch.add(x, x, out=o.view(-1)[:8].view(1, 8)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    results = {}
    for name, call in cases().items():
        results[name] = best_us(call)
        print(f"{name:<45} {results[name]:7.2f} µs", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"device": DEVICE, "torch": torch.__version__, "us": results}, file, indent=1)


if __name__ == "__main__":
    main()
