"""What only a real card shows: graph capture, streams side by side, threads, and nothing left on the default stream."""

from __future__ import annotations

import threading

import pytest
import torch
from clover_ops._generated.table import OPERATORS

from .work import make

NAMES = [op.name for op in OPERATORS]


def eager(name: str, seed: int) -> list[torch.Tensor]:
    run, written = make(name, seed)
    run()
    torch.cuda.synchronize()
    return [t.clone() for t in written]


def assert_same(got: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for a, b in zip(got, wanted):
        assert torch.equal(a.view(torch.uint8), b.view(torch.uint8))


@pytest.mark.parametrize("name", NAMES)
def test_graph_capture_gives_the_same_bits(name):
    wanted = eager(name, 1)
    run, written = make(name, 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    graph.replay()
    torch.cuda.synchronize()
    assert_same(written, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_two_streams_at_once(name):
    wanted = [eager(name, seed) for seed in (1, 2)]
    work = [make(name, seed) for seed in (1, 2)]
    streams = [torch.cuda.Stream() for _ in work]
    torch.cuda.synchronize()
    for (run, _), stream in zip(work, streams):
        with torch.cuda.stream(stream):
            run()
    torch.cuda.synchronize()
    for (_, written), expected in zip(work, wanted):
        assert_same(written, expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_callers_stream_orders_the_work(name):
    """A long kernel ahead on the caller's stream: the operator must wait for it, so it reads what that kernel wrote."""
    wanted = eager(name, 3)
    run, written = make(name, 3)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        run()
    assert not stream.query(), "the operator waited on the host, or the delay was too short"
    stream.synchronize()
    assert_same(written, wanted)


def test_threads_on_streams_of_their_own():
    wanted = {name: eager(name, 5) for name in NAMES}
    work = {name: make(name, 5) for name in NAMES}
    torch.cuda.synchronize()
    failures: list[str] = []

    def body(name: str) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                work[name][0]()
                torch.cuda.current_stream().synchronize()
            assert_same(work[name][1], wanted[name])
        except Exception as error:
            failures.append(f"{name}: {error}")

    threads = [threading.Thread(target=body, args=(name,)) for name in NAMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("name", NAMES)
def test_ten_runs_give_the_same_bits(name):
    first = eager(name, 7)
    for _ in range(9):
        assert_same(eager(name, 7), first)
