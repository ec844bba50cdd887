"""Device time of a call inside a graph, over inputs that rotate through more than the L2 holds; on the CPU, wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import torch


def graph_time(
    calls: Sequence[Callable[[], object]], replays: int = 9, minimum_us: float = 2000.0, warm_up_us: float = 60e3
) -> float:
    """Microseconds per call: the calls, one after another, in one graph; the median of its replays.

    A replay lasts long enough for the graph's own start (some 10 µs) not to count, and the clocks of an idle card are given
    time to rise first.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls[:3]:
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    rounds = 1
    while True:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(rounds):
                for call in calls:
                    call()
        graph.replay()
        once = _replay_us(graph)
        if once >= minimum_us or rounds * len(calls) >= 4096:
            break
        rounds *= max(2, min(16, int(minimum_us / once) + 1))
    for _ in range(int(warm_up_us / once) + 1):
        graph.replay()
    return statistics.median(_replay_us(graph) for _ in range(replays)) / (rounds * len(calls))


def _replay_us(graph: torch.cuda.CUDAGraph) -> float:
    return _event_us(graph.replay)


def _event_us(work: Callable[[], object]) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


def wall_time(calls: Sequence[Callable[[], object]], repeats: int = 9, least_us: float = 2000.0) -> float:
    """Microseconds per call on the CPU: the median of the repeats, each of which lasts `least_us` or longer."""
    for call in calls:
        call()
    rounds = 1
    while (once := _rounds_us(calls, rounds)) < least_us and rounds < 4096:
        rounds *= max(2, min(16, int(least_us / max(once, 1e-3)) + 1))
    return statistics.median(_rounds_us(calls, rounds) for _ in range(repeats)) / (rounds * len(calls))


def _rounds_us(calls: Sequence[Callable[[], object]], rounds: int) -> float:
    begin = time.perf_counter()
    for _ in range(rounds):
        for call in calls:
            call()
    return (time.perf_counter() - begin) * 1e6


def rotations(bytes_per_call: float, device: torch.device, factor: float = 3.0, most: int = 96) -> int:
    """How many sets of inputs cover `factor` times the L2; two on the CPU, whose caches are shared with everything else."""
    if device.type != "cuda":
        return 2
    l2 = torch.cuda.get_device_properties(device).L2_cache_size
    return max(2, min(most, int(factor * l2 / max(bytes_per_call, 1)) + 1))


def copy_bandwidth(device: torch.device) -> float:
    """Bytes per microsecond of a large copy, bytes read plus bytes written; the best of several, outside a graph, where a copy
    is a kernel rather than a copy engine's node."""
    on_gpu = device.type == "cuda"
    source = torch.ones(1 << (30 if on_gpu else 25), device=device)
    target = torch.empty_like(source)

    def copy() -> object:
        return torch.mul(source, 1.0, out=target)

    best = min(_event_us(copy) if on_gpu else _rounds_us([copy], 1) for _ in range(9))
    return 2 * source.numel() * source.element_size() / best
