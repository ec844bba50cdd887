"""The rows of the speed record: one work each, with its floor in bytes, our call, and what a user would pick instead.

Each row gives callables over enough sets of inputs to overflow the L2; a peer that is not installed is left out by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import clover_ops
import torch

from .timing import rotations

BF16 = torch.bfloat16
H, HV, K, V = 16, 32, 128, 128
E, TOP_K, D, I = 256, 8, 2048, 512
TOKEN_BYTES = 2 * (2 * H * K + 2 * HV * V) + 8 * HV
STATE_BYTES = HV * V * K * 4


@dataclass
class Row:
    name: str
    floor_bytes: float
    target: str  # as the plan states it
    limit: Callable[[float], float]  # floor in µs -> µs to reach
    calls: list[Callable[[], object]]
    peers: dict[str, list[Callable[[], object]]] = field(default_factory=dict)


def int32(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device="cuda")


def _delta_inputs(sequences: int, width: int, commit: bool):
    """One call's tensors, its state pool, and the slots."""
    tokens = sequences * width
    q, k = (torch.randn(tokens, H, K, device="cuda", dtype=BF16) for _ in range(2))
    v = torch.randn(tokens, HV, V, device="cuda", dtype=BF16)
    g, beta = -0.1 * torch.rand(tokens, HV, device="cuda"), torch.rand(tokens, HV, device="cuda")
    state = 0.1 * torch.randn(sequences, HV, V, K, device="cuda")
    cu_seqlens = int32(list(range(0, tokens + 1, width)))
    slots = int32(list(range(sequences)))
    return q, k, v, g, beta, state, cu_seqlens, slots


def preview_delta(sequences: int, width: int, target: str, limit) -> Row:
    floor = sequences * (STATE_BYTES + width * TOKEN_BYTES)
    sets = [_delta_inputs(sequences, width, False) for _ in range(rotations(floor))]
    calls = []
    for q, k, v, g, beta, state, cu_seqlens, slots in sets:
        o = torch.empty_like(v)
        workspace = _workspace(
            clover_ops.preview_gated_delta_rule_workspace_size(
                q, k, v, g, beta, state, cu_seqlens, slots, l2norm=True, max_seqlen=width
            )
        )
        calls.append(
            lambda a=(q, k, v, g, beta, state, cu_seqlens, slots), o=o, w=workspace: (
                clover_ops.preview_gated_delta_rule(*a, l2norm=True, max_seqlen=width, out=o, workspace=w)
            )
        )
    peers = _fla_read_only(sets, sequences, width)
    return Row(f"preview delta rule, bidirectional, {sequences} x {width}", floor, target, limit, calls, peers)


def _workspace(size: int) -> torch.Tensor | None:
    return torch.empty(size, dtype=torch.uint8, device="cuda") if size else None


def _fla_read_only(sets, sequences: int, width: int):
    try:
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
    except ImportError:
        return {}

    def call(function, q, k, v, g, beta, state):
        shape = (sequences, width)
        return lambda: function(
            q.view(*shape, H, K), k.view(*shape, H, K), v.view(*shape, HV, V), g=g.view(*shape, HV),
            beta=beta.view(*shape, HV), initial_state=state, output_final_state=False, use_qk_l2norm_in_kernel=True,
        )  # fmt: skip

    return {
        "FLA recurrent (causal)": [call(fused_recurrent_gated_delta_rule, *s[:6]) for s in sets],
        "FLA chunk (causal)": [call(chunk_gated_delta_rule, *s[:6]) for s in sets],
    }


def commit_delta(sequences: int, width: int, target: str, limit) -> Row:
    floor = sequences * (2 * STATE_BYTES + width * TOKEN_BYTES)
    sets = [_delta_inputs(sequences, width, True) for _ in range(rotations(floor))]
    calls, peer = [], []
    for q, k, v, g, beta, state, cu_seqlens, slots in sets:
        o = torch.empty_like(v)
        arguments = (q, k, v, g, beta, state, cu_seqlens, slots, slots)
        size = clover_ops.gated_delta_rule_workspace_size(*arguments, l2norm=True, max_seqlen=width)
        calls.append(
            lambda a=arguments, o=o, w=_workspace(size): clover_ops.gated_delta_rule(
                *a, l2norm=True, max_seqlen=width, out=o, workspace=w
            )
        )
    try:
        from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule as fla

        for q, k, v, g, beta, state, *_ in sets:
            s = (sequences, width)
            peer.append(
                lambda q=q, k=k, v=v, g=g, beta=beta, state=state, s=s: fla(
                    q.view(*s, H, K), k.view(*s, H, K), v.view(*s, HV, V), g=g.view(*s, HV), beta=beta.view(*s, HV),
                    initial_state=state, output_final_state=True, use_qk_l2norm_in_kernel=True,
                )
            )  # fmt: skip
    except ImportError:
        pass
    peers = {"FLA recurrent": peer} if peer else {}
    return Row(f"commit, {sequences} x {width}", floor, target, limit, calls, peers)


def prompt(tokens: int) -> Row:
    """One long prompt; nothing is promised here, the peer's chunked form is the mark."""
    floor = 2 * STATE_BYTES + tokens * TOKEN_BYTES
    q, k, v, g, beta, state, cu_seqlens, slots = _delta_inputs(1, tokens, True)
    o = torch.empty_like(v)
    arguments = (q, k, v, g, beta, state, cu_seqlens, slots, slots)
    workspace = _workspace(clover_ops.gated_delta_rule_workspace_size(*arguments, l2norm=True))
    calls = [lambda: clover_ops.gated_delta_rule(*arguments, l2norm=True, out=o, workspace=workspace)]
    peers = {}
    try:
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule as fla

        peers["FLA chunk"] = [
            lambda: fla(
                q[None], k[None], v[None], g=g[None], beta=beta[None], initial_state=state, output_final_state=True,
                use_qk_l2norm_in_kernel=True,
            )
        ]  # fmt: skip
    except ImportError:
        pass
    return Row(
        f"commit, one prompt of {tokens}",
        floor,
        "ahead of FLA chunk (stretch)",
        lambda floor: float("nan"),
        calls,
        peers,
    )


def moe(tokens: int, target: str, limit, coreset: bool = False) -> Row:
    logits = torch.randn(tokens, E, device="cuda")
    live = None
    if coreset:
        live = torch.arange(tokens, device="cuda") % 2 == 0
        cu_seqlens = int32([0, tokens])
        _, ids, weights = clover_ops.block_coreset(logits, cu_seqlens, live, TOP_K, 48, renormalize=True)
        ids, weights, _, _ = clover_ops.live_row_routes(ids, weights, live)
    else:
        ids, weights = clover_ops.topk_softmax(logits, TOP_K, renormalize=True)
    used = int(ids[ids >= 0].unique().numel())
    floor = used * 3 * D * I * 2 + 2 * tokens * D * 2
    # Where a call reads more than three times the L2, it rotates by itself; where it reads less, calls take other experts.
    read, l2 = used * 3 * D * I * 2, torch.cuda.get_device_properties(0).L2_cache_size
    copies = 1 if read > 3 * l2 else rotations(read)
    pools = [
        (
            0.02 * torch.randn(E, 2 * I, D, device="cuda", dtype=BF16),
            0.02 * torch.randn(E, D, I, device="cuda", dtype=BF16),
        )
        for _ in range(min(copies, 2))
    ]
    x = torch.randn(tokens, D, device="cuda", dtype=BF16)
    calls, grouped = [], []
    y = torch.empty_like(x)
    for turn in range(copies):
        w13, w2 = pools[turn % len(pools)]
        shifted = torch.where(ids >= 0, (ids + 37 * (turn // len(pools))) % E, ids)
        workspace = _workspace(clover_ops.fused_moe_workspace_size(x, w13, w2, shifted, weights))
        calls.append(lambda a=(x, w13, w2, shifted, weights), w=workspace: clover_ops.fused_moe(*a, out=y, workspace=w))
        if not coreset:
            grouped.append(_grouped_mm(x, w13, w2, shifted, weights))
    name = f"MoE, T = {tokens}" + (", coreset 48, half the rows live" if coreset else "")
    return Row(name, floor, target, limit, calls, {} if coreset else {"torch _grouped_mm": grouped})


def _grouped_mm(x, w13, w2, ids, weights):
    """The path that PyTorch offers: sort, grouped products, activation, weighted scatter; without a host round trip."""
    experts = torch.arange(E, device="cuda")

    def run():
        flat = ids.flatten().long()
        order = flat.argsort(stable=True)
        offsets = (flat[:, None] == experts).sum(0).cumsum(0).to(torch.int32)
        rows = x[order // TOP_K]
        up = torch._grouped_mm(rows, w13.transpose(1, 2), offs=offsets)
        inner = torch.nn.functional.silu(up[:, :I]) * up[:, I:]
        down = torch._grouped_mm(inner, w2.transpose(1, 2), offs=offsets)
        out = torch.zeros_like(x, dtype=torch.float32)
        out.index_add_(0, order // TOP_K, down.float() * weights.flatten()[order, None])
        return out.to(x.dtype)

    return run


def coreset_row(tokens: int) -> Row:
    logits = [torch.randn(tokens, E, device="cuda") for _ in range(16)]
    cu_seqlens = int32([0, tokens])
    size = clover_ops.block_coreset_workspace_size(logits[0], cu_seqlens, None, TOP_K, 48)
    outs = clover_ops.block_coreset(logits[0], cu_seqlens, None, TOP_K, 48)
    workspace = _workspace(size)
    calls = [
        lambda a=a: clover_ops.block_coreset(a, cu_seqlens, None, TOP_K, 48, out=outs, workspace=workspace)
        for a in logits
    ]
    return Row(f"coreset + top-k, {tokens} tokens", tokens * E * 4, "<= 8 µs", lambda floor: 8.0, calls)


def streaming() -> list[Row]:
    """Convolution, gating, rotary, norm, merge and layout at a size where memory decides."""
    rows = []
    tokens, channels = 8192, 8192

    def add(name, floor, calls):
        rows.append(Row(name, floor, ">= 80 % of copy bandwidth", lambda floor: floor / 0.8, calls))

    x = [torch.randn(tokens, channels, device="cuda", dtype=BF16) for _ in range(2)]
    y = torch.empty_like(x[0])
    weight, bias = torch.randn(channels, 4, device="cuda", dtype=BF16), torch.randn(channels, device="cuda", dtype=BF16)
    conv_state = torch.randn(4, channels, 3, device="cuda", dtype=BF16)
    cu_seqlens, slot = int32([0, tokens]), int32([1])
    nbytes = x[0].numel() * 2
    add("causal_conv1d, 8192 x 8192", 2 * nbytes, [
        lambda a=a: clover_ops.causal_conv1d(a, weight, bias, conv_state, cu_seqlens, slot, slot, "silu", out=y) for a in x
    ])  # fmt: skip
    v = [a.view(tokens, 64, 128) for a in x]
    norm_weight = torch.randn(128, device="cuda", dtype=BF16)
    z = torch.randn_like(v[0])
    add("rms_norm_gated, 8192 x 64 x 128", 3 * nbytes, [
        lambda a=a: clover_ops.rms_norm_gated(a, norm_weight, z, out=y.view(tokens, 64, 128)) for a in v
    ])  # fmt: skip
    live = torch.arange(tokens, device="cuda") % 2 == 0
    cache = torch.randn_like(x[0])
    add("merge_live_rows, 8192 x 8192", 2.5 * nbytes, [
        lambda a=a: clover_ops.merge_live_rows(a, cache, live, out=y) for a in x
    ])  # fmt: skip
    add("cast BF16 to FP32, 8192 x 8192", 3 * nbytes, [
        lambda a=a, w=torch.empty(tokens, channels, device="cuda"): clover_ops.cast(a, w) for a in x
    ])  # fmt: skip
    add("rearrange, transposed, 8192 x 8192", 2 * nbytes, [lambda a=a: clover_ops.rearrange(a.t(), y) for a in x])
    positions = torch.arange(tokens, device="cuda", dtype=torch.int32)
    cos_sin = torch.randn(tokens, 64, device="cuda", dtype=BF16)
    q = [torch.randn(tokens, 16, 64, device="cuda", dtype=BF16) for _ in range(8)]
    k = [torch.randn(tokens, 16, 64, device="cuda", dtype=BF16) for _ in range(8)]
    add("rotary_embedding, 8192 x 16 + 16 x 64", 4 * q[0].numel() * 2, [
        lambda a=a, b=b: clover_ops.rotary_embedding(positions, a, b, cos_sin) for a, b in zip(q, k)
    ])  # fmt: skip
    big = 1 << 20
    a = [torch.randn(big, HV, device="cuda", dtype=BF16) for _ in range(2)]
    A_log, dt_bias = torch.randn(HV, device="cuda"), torch.randn(HV, device="cuda", dtype=BF16)
    outs = tuple(torch.empty(big, HV, device="cuda") for _ in range(2))
    add(f"gated_delta_net_gating, {big} x 32", big * HV * 12, [
        lambda p=p: clover_ops.gated_delta_net_gating(p, a[0], A_log, dt_bias, out=outs) for p in a
    ])  # fmt: skip
    return rows


def preview_gdn(sequences: int, width: int) -> Row:
    channels, tokens = 2 * H * K + HV * V, sequences * width
    floor = sequences * STATE_BYTES + tokens * TOKEN_BYTES
    calls = []
    for _ in range(rotations(floor)):
        qkv = torch.randn(tokens, channels, device="cuda", dtype=BF16)
        a, b = (torch.randn(tokens, HV, device="cuda", dtype=BF16) for _ in range(2))
        z = torch.randn(tokens, HV, V, device="cuda", dtype=BF16)
        conv_weight = 0.5 * torch.randn(channels, 4, device="cuda", dtype=BF16)
        conv_state = torch.randn(sequences, channels, 3, device="cuda", dtype=BF16)
        A_log, dt_bias = torch.rand(HV, device="cuda"), torch.randn(HV, device="cuda", dtype=BF16)
        state = 0.1 * torch.randn(sequences, HV, V, K, device="cuda")
        cu_seqlens, slots = int32(list(range(0, tokens + 1, width))), int32(list(range(sequences)))
        norm_weight = torch.randn(V, device="cuda", dtype=BF16)
        arguments = (qkv, a, b, z, conv_weight, None, conv_state, A_log, dt_bias, state, cu_seqlens, slots, norm_weight)
        size = clover_ops.preview_gdn_workspace_size(*arguments, max_seqlen=width)
        o = torch.empty(tokens, HV, V, device="cuda", dtype=BF16)
        calls.append(
            lambda a=arguments, o=o, w=_workspace(size): clover_ops.preview_gdn(
                *a, max_seqlen=width, out=o, workspace=w
            )
        )
    target = "<= 1.3 x the preview delta rule alone"
    return Row(f"preview_gdn, {sequences} x {width}", floor, target, lambda floor: float("nan"), calls)
