"""The speed record on a GPU: `python -m tests.benchmarks.gpu [--json FILE] [--only TEXT]`, with clover-ops installed.

Device time inside a CUDA graph, inputs rotated beyond the L2, peers in the same run. Floor is the bytes that must move over
the copy bandwidth measured in this run. Unfavourable figures are printed like the others.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import time
import traceback

import torch
from clover_ops.bench.timing import copy_bandwidth, graph_time

from . import rows as r


def plan():
    """Row makers, in the order of the record; a row is made when its turn comes, so that memory is not held."""
    two = lambda floor: 2.0 * floor  # noqa: E731
    yield lambda: r.preview_delta(1, 32, "<= 6 µs", lambda floor: 6.0)
    yield lambda: r.preview_delta(16, 32, "<= 2 x floor", two)
    yield lambda: r.preview_delta(64, 32, "<= 2 x floor", two)
    yield lambda: r.preview_gdn(1, 32)
    yield lambda: r.preview_gdn(16, 32)
    for sequences in (16, 64):
        yield lambda n=sequences: r.commit_delta(n, 1, "<= 1.15 x floor", lambda floor: 1.15 * floor)
    for sequences in (16, 64):
        yield lambda n=sequences: r.commit_delta(n, 8, "<= 1.5 x floor", lambda floor: 1.5 * floor)
    yield lambda: r.moe(1, "<= 2.0 x floor", two)
    yield lambda: r.moe(8, "<= 1.12 x floor", lambda floor: 1.12 * floor)
    for tokens in (32, 64, 256):
        yield lambda t=tokens: r.moe(t, "<= 1.05 x floor", lambda floor: 1.05 * floor)
    for tokens in (1024, 4096):
        yield lambda t=tokens: r.moe(t, "ahead of _grouped_mm", lambda floor: math.nan)
    yield lambda: r.moe(32, "<= 0.35 x plain T = 32", lambda floor: math.nan, coreset=True)
    yield lambda: r.coreset_row(32)
    for maker in ("causal_conv1d", "rms_norm_gated", "merge_live_rows", "cast", "rearrange", "rotary_embedding"):
        yield lambda m=maker: r.streaming(m, 8192)
    yield lambda: r.streaming("gating", 1 << 20)
    yield lambda: r.prompt(8192)  # last, since its peers tune themselves for a minute or more


def measure(row: r.Row, bandwidth: float) -> dict:
    floor = row.work.floor_bytes / bandwidth
    errors = row.errors() if row.errors else None  # before the timed calls, which renew the states many times over
    ours = graph_time(row.work.calls)
    limit = row.limit(floor)
    peers = {}
    for name, calls in row.peers.items():
        if isinstance(calls, str):
            peers[name] = calls
            continue
        try:
            peers[name] = graph_time(calls)
        except Exception as error:  # a peer that cannot be captured is recorded, not hidden
            torch.cuda.synchronize()
            peers[name] = f"failed: {type(error).__name__}: {str(error).splitlines()[0][:100]}"
    met = None if math.isnan(limit) else ours <= limit
    return {
        "row": row.work.name,
        "us": ours,
        "floor_us": floor,
        "ratio": ours / floor,
        "target": row.target,
        "met": met,
        "peers": peers,
        **({"errors": errors} if errors else {}),
    }


def settle(results: list[dict]) -> None:
    """Targets that compare rows with each other."""
    by_name = {entry["row"]: entry for entry in results}
    for n in (1, 16):
        gdn, alone = by_name.get(f"preview_gdn, {n} x 32"), by_name.get(f"preview delta rule, bidirectional, {n} x 32")
        if gdn and alone:
            gdn["met"] = gdn["us"] <= 1.3 * alone["us"]
    core, plain = by_name.get("MoE, T = 32, coreset 48, half the rows live"), by_name.get("MoE, T = 32")
    if core and plain:
        core["met"] = core["us"] <= 0.35 * plain["us"]
    for entry in results:
        if entry["met"] is None and entry["peers"]:
            times = [t for t in entry["peers"].values() if isinstance(t, float)]
            entry["met"] = bool(times) and entry["us"] < min(times)


def write(path: str | None, results: list[dict], bandwidth: float, failures: int) -> None:
    if path is None:
        return
    record = {
        "command": "python -m tests.benchmarks.gpu " + " ".join(sys.argv[1:]),
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "copy_bandwidth_tb_s": bandwidth / 1e6,
        "results": results,
        "failures": failures,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", metavar="TEXT", default="")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    bandwidth = copy_bandwidth(r.PLACE.device)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; copy bandwidth {bandwidth / 1e6:.2f} TB/s")
    results, failures = [], 0
    for make in plan():
        try:
            row = make()
            if arguments.only in row.work.name:
                results.append(measure(row, bandwidth))
                print(f"{row.work.name}: {results[-1]['us']:.2f} µs", file=sys.stderr, flush=True)
                settle(results)
                write(arguments.json, results, bandwidth, failures)  # a run that is cut off leaves what it has
        except Exception:
            failures += 1
            traceback.print_exc()
        torch.cuda.empty_cache()
    settle(results)
    for entry in results:
        verdict = {True: "met", False: "UNMET", None: "-"}[entry["met"]]
        peers = ", ".join(f"{n} {t:.1f}" if isinstance(t, float) else f"{n} {t}" for n, t in entry["peers"].items())
        figures = f"{entry['us']:9.2f} µs {entry['ratio']:6.2f} x floor"
        print(f"{entry['row']:<52} {figures}  {verdict:<6} {entry['target']:<38} {peers}")
        for name, errors in entry.get("errors", {}).items():
            shown = ", ".join(
                f"{what} {e:.1e}" if isinstance(e, float) else f"{what}: {e}" for what, e in errors.items()
            )
            print(f"    error of {name} against float64: {shown}")
    write(arguments.json, results, bandwidth, failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
