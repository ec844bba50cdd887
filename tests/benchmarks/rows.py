"""The rows of the speed record: our work from clover_ops.bench, what it is to reach, and what a user would pick instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from clover_ops.bench import works
from clover_ops.bench.works import Work

from . import accuracy, peers

PLACE = works.Place(torch.device("cuda", 0))
NO_LIMIT = float("nan")


@dataclass
class Row:
    work: Work
    target: str  # as the plan states it
    limit: Callable[[float], float]  # floor in µs -> µs to reach
    peers: peers.Peers = field(default_factory=dict)
    errors: Callable[[], dict] | None = None  # errors against float64, ours and the peers'


def preview_delta(sequences: int, width: int, target: str, limit) -> Row:
    work = works.preview_delta(PLACE, sequences, width)
    return Row(work, target, limit, peers.delta_read_only(work.sets, sequences, width))


def commit_delta(sequences: int, width: int, target: str, limit) -> Row:
    work = works.commit_delta(PLACE, sequences, width)
    return Row(work, target, limit, peers.delta_commit(work.sets, sequences, width))


def prompt(tokens: int) -> Row:
    """One long prompt; nothing is promised here, the peers' chunked forms are the mark, their errors beside them."""
    work = works.commit_delta(PLACE, 1, tokens)
    return Row(
        work,
        "ahead of FLA chunk (stretch)",
        lambda floor: NO_LIMIT,
        peers.delta_prompt(work.sets),
        lambda: accuracy.prompt_errors(work.sets[0]),
    )


def preview_gdn(sequences: int, width: int) -> Row:
    work = works.preview_gdn(PLACE, sequences, width)
    return Row(work, "<= 1.3 x the preview delta rule alone", lambda floor: NO_LIMIT)


def moe(tokens: int, target: str, limit, coreset: bool = False) -> Row:
    work = works.moe(PLACE, tokens, coreset)
    return Row(work, target, limit, {} if coreset else peers.moe(work.sets))


def coreset_row(tokens: int) -> Row:
    return Row(works.block_coreset(PLACE, tokens), "<= 8 µs", lambda floor: 8.0)


def streaming(maker: str, tokens: int) -> Row:
    """Convolution, gating, rotary, norm, merge and layout at a size where memory decides."""
    work = getattr(works, maker)(PLACE, tokens)
    others = peers.convolution(work.sets) if maker == "causal_conv1d" else {}
    return Row(work, ">= 80 % of copy bandwidth", lambda floor: floor / 0.8, others)
