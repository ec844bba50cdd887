"""One realistic call per operator on the GPU, as (function of no arguments, tensors that it writes)."""

from __future__ import annotations

from collections.abc import Callable

import clover_ops
import torch

BF16 = torch.bfloat16


def make(operator: str, seed: int) -> tuple[Callable[[], None], list[torch.Tensor]]:
    generator = torch.Generator(device="cuda").manual_seed(seed)

    def randn(*shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", generator=generator).to(dtype)

    def int32(values: list[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device="cuda")

    T, H, HV, K, V, N = 48, 4, 8, 128, 128, 3
    C = 2 * H * K + HV * V
    cu, slots = int32([0, 7, 39, 48]), int32([2, 0, 3])
    x, weight, conv_state = randn(T, C), randn(C, 4), randn(5, C, 3)
    q, k, v = randn(T, H, K), randn(T, H, K), randn(T, HV, V)
    g = -torch.rand(T, HV, device="cuda", generator=generator)
    beta = torch.rand(T, HV, device="cuda", generator=generator)
    state = 0.1 * randn(5, HV, V, K, dtype=torch.float32)
    a, b, z, A_log, dt_bias = randn(T, HV), randn(T, HV), randn(T, HV, V), randn(HV, dtype=torch.float32), randn(HV)
    E, top_k, D, inner = 32, 4, 256, 128
    logits, live = randn(T, E, dtype=torch.float32), torch.arange(T, device="cuda") % 3 != 0
    ids, weights = clover_ops.topk_softmax(logits, top_k)

    if operator == "causal_conv1d":
        y = torch.zeros_like(x)
        return lambda: clover_ops.causal_conv1d(x, weight, None, conv_state, cu, slots, slots, "silu", out=y), [
            y,
            conv_state,
        ]
    if operator == "preview_conv1d":
        y = torch.zeros_like(x)
        return lambda: clover_ops.preview_conv1d(x, weight, None, conv_state, cu, slots, "silu", out=y), [y]
    if operator == "gated_delta_net_gating":
        outs = tuple(torch.zeros(T, HV, device="cuda") for _ in range(2))
        return lambda: clover_ops.gated_delta_net_gating(a, b, A_log, dt_bias, out=outs), list(outs)
    if operator == "gated_delta_rule":
        o, arguments = torch.zeros_like(v), (q, k, v, g, beta, state, cu, slots, slots)
        w = scratch(clover_ops.gated_delta_rule_workspace_size(*arguments, l2norm=True))
        return lambda: clover_ops.gated_delta_rule(*arguments, l2norm=True, out=o, workspace=w), [o, state]
    if operator == "preview_gated_delta_rule":
        o, arguments = torch.zeros_like(v), (q, k, v, g, beta, state, cu, slots)
        w = scratch(clover_ops.preview_gated_delta_rule_workspace_size(*arguments, l2norm=True, max_seqlen=32))
        return (
            lambda: clover_ops.preview_gated_delta_rule(*arguments, l2norm=True, max_seqlen=32, out=o, workspace=w),
            [o],
        )
    if operator == "preview_gdn":
        o, arguments = (
            torch.zeros_like(v),
            (x, a, b, z, weight, None, conv_state, A_log, dt_bias, state, cu, slots, randn(V)),
        )
        w = scratch(clover_ops.preview_gdn_workspace_size(*arguments, max_seqlen=32))
        return lambda: clover_ops.preview_gdn(*arguments, max_seqlen=32, out=o, workspace=w), [o]
    if operator == "topk_softmax":
        outs = (torch.zeros_like(ids), torch.zeros_like(weights))
        return lambda: clover_ops.topk_softmax(logits, top_k, out=outs), list(outs)
    if operator == "block_coreset":
        outs = (torch.zeros(N, E, dtype=torch.bool, device="cuda"), torch.zeros_like(ids), torch.zeros_like(weights))
        w = scratch(clover_ops.block_coreset_workspace_size(logits, cu, live, top_k, 8))
        return lambda: clover_ops.block_coreset(logits, cu, live, top_k, 8, out=outs, workspace=w), list(outs)
    if operator == "live_row_routes":
        outs = (torch.zeros_like(ids), torch.zeros_like(weights), int32([0] * T), int32([0]))
        return lambda: clover_ops.live_row_routes(ids, weights, live, out=outs), list(outs)
    if operator == "merge_live_rows":
        cache, out = randn(T, D), torch.zeros(T, D, device="cuda", dtype=BF16)
        fresh = randn(T, D)
        return lambda: clover_ops.merge_live_rows(fresh, cache, live, out=out), [out, cache]
    if operator == "fused_moe":
        hidden, w13, w2 = randn(T, D), 0.1 * randn(E, 2 * inner, D), 0.1 * randn(E, D, inner)
        y, arguments = torch.zeros_like(hidden), (hidden, w13, w2, ids, weights)
        w = scratch(clover_ops.fused_moe_workspace_size(*arguments))
        return lambda: clover_ops.fused_moe(*arguments, out=y, workspace=w), [y]
    if operator == "rotary_embedding":
        positions, table = torch.arange(T, device="cuda", dtype=torch.int32), randn(T, 64)
        return lambda: clover_ops.rotary_embedding(positions, q, k, table), [q, k]
    if operator == "rearrange":
        target = torch.zeros(C, T, device="cuda", dtype=BF16)
        return lambda: clover_ops.rearrange(x.t(), target), [target]
    if operator == "cast":
        target = torch.zeros(T, C, device="cuda")
        return lambda: clover_ops.cast(x, target), [target]
    if operator == "rms_norm_gated":
        y, norm = torch.zeros_like(v), randn(V)
        return lambda: clover_ops.rms_norm_gated(v, norm, z, out=y), [y]
    raise KeyError(operator)


def scratch(size: int) -> torch.Tensor | None:
    return torch.empty(size, dtype=torch.uint8, device="cuda") if size else None
