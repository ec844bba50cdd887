"""The works that are timed: inputs in Clover's geometry, the bytes that must move, and calls over enough sets of them.

The data's tensors come from torch's generator; who wants the same ones twice seeds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

import clover_ops

from .timing import rotations

BF16 = torch.bfloat16
H, HV, K, V = 16, 32, 128, 128
E, TOP_K, D, I = 256, 8, 2048, 512
BUDGET = 48
CHANNELS = 2 * H * K + HV * V
TOKEN_BYTES = 2 * (2 * H * K + 2 * HV * V) + 8 * HV
STATE_BYTES = HV * V * K * 4


@dataclass
class Work:
    name: str
    floor_bytes: float
    calls: list[Callable[[], object]]
    sets: list[Any] = field(default_factory=list)  # the inputs of each call, for others who do the same work


@dataclass(frozen=True)
class Place:
    """Where the tensors lie, and which provider is asked (None: the one that the library chooses)."""

    device: torch.device
    provider: int | None = None

    def randn(self, *shape: int, dtype: torch.dtype = BF16, scale: float = 1.0) -> torch.Tensor:
        return scale * torch.randn(*shape, device=self.device, dtype=dtype)

    def rand(self, *shape: int) -> torch.Tensor:
        return torch.rand(*shape, device=self.device)

    def empty(self, *shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
        return torch.empty(*shape, device=self.device, dtype=dtype)

    def int32(self, values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device=self.device)

    def every_second(self, rows: int) -> torch.Tensor:
        return torch.arange(rows, device=self.device) % 2 == 0

    def call(self, name: str, *arguments: Any, out: Any = None, **attributes: Any) -> Callable[[], object]:
        """A call that allocates nothing: its workspace, where the operator has one, is made here."""
        function = getattr(clover_ops, name)
        attributes["provider"] = self.provider
        size_of = getattr(clover_ops, f"{name}_workspace_size", None)
        if size_of is not None:
            size = size_of(*arguments, **attributes)
            attributes["workspace"] = self._aligned(size) if size else None
        if out is not None:
            attributes["out"] = out
        return lambda: function(*arguments, **attributes)

    def _aligned(self, size: int) -> torch.Tensor:
        buffer = torch.empty(size + 256, dtype=torch.uint8, device=self.device)
        begin = -buffer.data_ptr() % 256
        return buffer[begin : begin + size]

    def rotations(self, bytes_per_call: float) -> int:
        return rotations(bytes_per_call, self.device)


def delta_inputs(place: Place, sequences: int, width: int) -> tuple[torch.Tensor, ...]:
    """q, k, v, g, beta, the pool of states, cu_seqlens and the slots."""
    tokens = sequences * width
    q, k = (place.randn(tokens, H, K) for _ in range(2))
    v = place.randn(tokens, HV, V)
    g, beta = -0.1 * place.rand(tokens, HV), place.rand(tokens, HV)
    state = place.randn(sequences, HV, V, K, dtype=torch.float32, scale=0.1)
    return q, k, v, g, beta, state, place.int32(range(0, tokens + 1, width)), place.int32(range(sequences))


def preview_delta(place: Place, sequences: int, width: int) -> Work:
    floor = sequences * (STATE_BYTES + width * TOKEN_BYTES)
    sets = [delta_inputs(place, sequences, width) for _ in range(place.rotations(floor))]
    calls = [
        place.call("preview_gated_delta_rule", *s, l2norm=True, max_seqlen=width, out=torch.empty_like(s[2]))
        for s in sets
    ]
    return Work(f"preview delta rule, bidirectional, {sequences} x {width}", floor, calls, sets)


def commit_delta(place: Place, sequences: int, width: int) -> Work:
    floor = sequences * (2 * STATE_BYTES + width * TOKEN_BYTES)
    copies = place.rotations(floor) if width < 4096 else 1  # a long prompt rotates by itself
    sets = [delta_inputs(place, sequences, width) for _ in range(copies)]
    calls = [
        place.call("gated_delta_rule", *s, s[-1], l2norm=True, max_seqlen=width, out=torch.empty_like(s[2]))
        for s in sets
    ]
    name = f"commit, one prompt of {width}" if sequences == 1 and width > 64 else f"commit, {sequences} x {width}"
    return Work(name, floor, calls, sets)


def preview_gdn(place: Place, sequences: int, width: int) -> Work:
    tokens = sequences * width
    floor = sequences * STATE_BYTES + tokens * TOKEN_BYTES
    calls = []
    for _ in range(place.rotations(floor)):
        a, b = (place.randn(tokens, HV) for _ in range(2))
        arguments = (
            place.randn(tokens, CHANNELS), a, b, place.randn(tokens, HV, V), place.randn(CHANNELS, 4, scale=0.5), None,
            place.randn(sequences, CHANNELS, 3), place.rand(HV), place.randn(HV),
            place.randn(sequences, HV, V, K, dtype=torch.float32, scale=0.1), place.int32(range(0, tokens + 1, width)),
            place.int32(range(sequences)), place.randn(V),
        )  # fmt: skip
        calls.append(place.call("preview_gdn", *arguments, max_seqlen=width, out=place.empty(tokens, HV, V)))
    return Work(f"preview_gdn, {sequences} x {width}", floor, calls)


def moe(place: Place, tokens: int, coreset: bool = False, experts: int = E) -> Work:
    logits = place.randn(tokens, experts, dtype=torch.float32)
    if coreset:
        live = place.every_second(tokens)
        cu_seqlens = place.int32([0, tokens])
        _, ids, weights = clover_ops.block_coreset(logits, cu_seqlens, live, TOP_K, BUDGET, renormalize=True)
        ids, weights, _, _ = clover_ops.live_row_routes(ids, weights, live)
    else:
        ids, weights = clover_ops.topk_softmax(logits, TOP_K, renormalize=True)
    read = int(ids[ids >= 0].unique().numel()) * 3 * D * I * 2
    # Where a call reads more than three times the L2, it rotates by itself; where it reads less, calls take other experts.
    l2 = torch.cuda.get_device_properties(place.device).L2_cache_size if place.device.type == "cuda" else 0
    copies = 1 if read > 3 * l2 else place.rotations(read)
    pools = [
        (place.randn(experts, 2 * I, D, scale=0.02), place.randn(experts, D, I, scale=0.02))
        for _ in range(min(copies, 2))
    ]
    x, sets = place.randn(tokens, D), []
    for turn in range(copies):
        shifted = torch.where(ids >= 0, (ids + 37 * (turn // len(pools))) % experts, ids)
        sets.append((x, *pools[turn % len(pools)], shifted, weights))
    y = torch.empty_like(x)
    calls = [place.call("fused_moe", *s, out=y) for s in sets]
    name = f"MoE, T = {tokens}" + (", coreset 48, half the rows live" if coreset else "")
    name += "" if experts == E else f", {experts} experts"
    return Work(name, read + 2 * tokens * D * 2, calls, sets)


def block_coreset(place: Place, tokens: int) -> Work:
    cu_seqlens = place.int32([0, tokens])
    sets = [(place.randn(tokens, E, dtype=torch.float32), cu_seqlens, None, TOP_K, BUDGET) for _ in range(16)]
    outs = clover_ops.block_coreset(*sets[0])
    calls = [place.call("block_coreset", *s, out=outs) for s in sets]
    return Work(f"coreset + top-k, {tokens} tokens", tokens * E * 4, calls)


def topk_softmax(place: Place, tokens: int) -> Work:
    logits = [place.randn(tokens, E, dtype=torch.float32) for _ in range(4)]
    outs = clover_ops.topk_softmax(logits[0], TOP_K)
    calls = [place.call("topk_softmax", a, TOP_K, out=outs) for a in logits]
    return Work(f"topk_softmax, {tokens} x {E}", tokens * (E * 4 + TOP_K * 8), calls)


def live_row_routes(place: Place, tokens: int) -> Work:
    ids, weights = clover_ops.topk_softmax(place.randn(tokens, E, dtype=torch.float32), TOP_K)
    live = place.every_second(tokens)
    outs = clover_ops.live_row_routes(ids, weights, live)
    sets = [(ids.clone(), weights.clone(), live) for _ in range(4)]
    return Work(
        f"live_row_routes, {tokens} x {TOP_K}",
        tokens * (2 * TOP_K * 8 + 1 + 4),
        [place.call("live_row_routes", *s, out=outs) for s in sets],
    )


def causal_conv1d(place: Place, tokens: int, channels: int = CHANNELS) -> Work:
    sets = [place.randn(tokens, channels) for _ in range(2)]
    y, weight, bias = torch.empty_like(sets[0]), place.randn(channels, 4), place.randn(channels)
    pool, cu_seqlens, slot = place.randn(4, channels, 3), place.int32([0, tokens]), place.int32([1])
    calls = [place.call("causal_conv1d", x, weight, bias, pool, cu_seqlens, slot, slot, "silu", out=y) for x in sets]
    shared = (weight, bias, pool, cu_seqlens, slot)
    return Work(f"causal_conv1d, {tokens} x {channels}", 2 * sets[0].numel() * 2, calls, [(x, *shared) for x in sets])


def preview_conv1d(place: Place, sequences: int, width: int) -> Work:
    tokens = sequences * width
    sets = [place.randn(tokens, CHANNELS) for _ in range(2)]
    y, weight, bias = torch.empty_like(sets[0]), place.randn(CHANNELS, 4), place.randn(CHANNELS)
    pool = place.randn(sequences, CHANNELS, 3)
    cu_seqlens, slots = place.int32(range(0, tokens + 1, width)), place.int32(range(sequences))
    calls = [
        place.call("preview_conv1d", x, weight, bias, pool, cu_seqlens, slots, "silu", max_seqlen=width, out=y)
        for x in sets
    ]
    return Work(f"preview_conv1d, {sequences} x {width}", (2 * sets[0].numel() + pool.numel()) * 2, calls)


def gating(place: Place, tokens: int) -> Work:
    a = [place.randn(tokens, HV) for _ in range(2)]
    A_log, dt_bias = place.randn(HV, dtype=torch.float32), place.randn(HV)
    outs = tuple(place.empty(tokens, HV, dtype=torch.float32) for _ in range(2))
    calls = [place.call("gated_delta_net_gating", p, a[0], A_log, dt_bias, out=outs) for p in a]
    return Work(f"gated_delta_net_gating, {tokens} x {HV}", tokens * HV * 12, calls)


def rms_norm_gated(place: Place, tokens: int, heads: int = 64) -> Work:
    x = [place.randn(tokens, heads, V) for _ in range(2)]
    weight, z, y = place.randn(V), place.randn(tokens, heads, V), torch.empty_like(x[0])
    calls = [place.call("rms_norm_gated", a, weight, z, out=y) for a in x]
    return Work(f"rms_norm_gated, {tokens} x {heads} x {V}", 3 * y.numel() * 2, calls)


def merge_live_rows(place: Place, tokens: int, channels: int = 8192) -> Work:
    x = [place.randn(tokens, channels) for _ in range(2)]
    cache, live, y = place.randn(tokens, channels), place.every_second(tokens), torch.empty_like(x[0])
    calls = [place.call("merge_live_rows", a, cache, live, out=y) for a in x]
    # A live row is read once and written twice, for the cache is renewed; another is read and written.
    return Work(f"merge_live_rows, {tokens} x {channels}", 2.5 * y.numel() * 2, calls)


def cast(place: Place, tokens: int, channels: int = 8192) -> Work:
    x = [place.randn(tokens, channels) for _ in range(2)]
    wide = place.empty(tokens, channels, dtype=torch.float32)
    return Work(
        f"cast BF16 to FP32, {tokens} x {channels}", 3 * wide.numel() * 2, [place.call("cast", a, wide) for a in x]
    )


def rearrange(place: Place, tokens: int, channels: int = 8192) -> Work:
    x = [place.randn(channels, tokens) for _ in range(2)]
    y = place.empty(tokens, channels)
    return Work(
        f"rearrange, transposed, {tokens} x {channels}",
        2 * y.numel() * 2,
        [place.call("rearrange", a.t(), y) for a in x],
    )


def rotary_embedding(place: Place, tokens: int, heads: int = 16, rotated: int = 64) -> Work:
    sets = 8 if place.device.type == "cuda" else 2
    q, k = ([place.randn(tokens, heads, rotated) for _ in range(sets)] for _ in range(2))
    positions, cos_sin = place.int32(range(tokens)), place.randn(tokens, rotated)
    calls = [place.call("rotary_embedding", positions, a, b, cos_sin) for a, b in zip(q, k, strict=True)]
    return Work(f"rotary_embedding, {tokens} x {heads} + {heads} x {rotated}", 4 * q[0].numel() * 2, calls)
