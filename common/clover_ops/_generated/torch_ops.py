# Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit.
"""torch.ops.clover.*; importing this module registers them."""

import torch

from .._torch_library import index, new, refuse_stream, register, returns_nothing
from . import functions as _functions


def _causal_conv1d_into(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation="none",
    max_seqlen=None, *, y, provider=None
):
    _functions.causal_conv1d(
        x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation, max_seqlen,
        out=y, provider=provider
    )


register(
    "causal_conv1d",
    "(Tensor x, Tensor weight, Tensor? bias, Tensor(a!) conv_state, Tensor cu_seqlens, Tensor "
    "initial_state_indices, Tensor final_state_indices, str activation=\"none\", int? max_seqlen=None, *, "
    "Tensor(b!) y, int? provider=None) -> ()",
    _causal_conv1d_into,
    returns_nothing,
)


def causal_conv1d(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation, max_seqlen, out,
    provider, stream
):
    refuse_stream("causal_conv1d", stream)
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    final_state_indices = index(final_state_indices)
    if out is None:
        y = new(x, (x.shape[0], x.shape[1]), None, 0)
    else:
        y = out
    torch.ops.clover.causal_conv1d(
        x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation, max_seqlen,
        y=y, provider=provider
    )
    return y


def _preview_conv1d_fake(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation="none", max_seqlen=None, *, provider=None
):
    return new(x, (x.shape[0], x.shape[1]), None, 0)


register(
    "preview_conv1d",
    "(Tensor x, Tensor weight, Tensor? bias, Tensor conv_state, Tensor cu_seqlens, Tensor initial_state_indices, "
    "str activation=\"none\", int? max_seqlen=None, *, int? provider=None) -> Tensor",
    _functions.preview_conv1d,
    _preview_conv1d_fake,
)


def _preview_conv1d_into(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation="none", max_seqlen=None, *, y,
    provider=None
):
    _functions.preview_conv1d(
        x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen, out=y, provider=provider
    )


register(
    "preview_conv1d.into",
    "(Tensor x, Tensor weight, Tensor? bias, Tensor conv_state, Tensor cu_seqlens, Tensor initial_state_indices, "
    "str activation=\"none\", int? max_seqlen=None, *, Tensor(a!) y, int? provider=None) -> ()",
    _preview_conv1d_into,
    returns_nothing,
)


def preview_conv1d(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen, out, provider, stream
):
    refuse_stream("preview_conv1d", stream)
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    if out is None:
        return torch.ops.clover.preview_conv1d(
            x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen, provider=provider
        )
    y = out
    torch.ops.clover.preview_conv1d.into(
        x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen, y=y, provider=provider
    )
    return y


def _gated_delta_net_gating_fake(a, b, A_log, dt_bias, *, provider=None):
    return (
        new(A_log, (a.shape[0], a.shape[1]), torch.float32, None), new(A_log, (a.shape[0], a.shape[1]), torch.float32,
        None)
    )


register(
    "gated_delta_net_gating",
    "(Tensor a, Tensor b, Tensor A_log, Tensor dt_bias, *, int? provider=None) -> (Tensor, Tensor)",
    _functions.gated_delta_net_gating,
    _gated_delta_net_gating_fake,
)


def _gated_delta_net_gating_into(a, b, A_log, dt_bias, *, g, beta, provider=None):
    _functions.gated_delta_net_gating(a, b, A_log, dt_bias, out=(g, beta), provider=provider)


register(
    "gated_delta_net_gating.into",
    "(Tensor a, Tensor b, Tensor A_log, Tensor dt_bias, *, Tensor(a!) g, Tensor(b!) beta, int? provider=None) -> "
    "()",
    _gated_delta_net_gating_into,
    returns_nothing,
)


def gated_delta_net_gating(a, b, A_log, dt_bias, out, provider, stream):
    refuse_stream("gated_delta_net_gating", stream)
    if out is None:
        return torch.ops.clover.gated_delta_net_gating(a, b, A_log, dt_bias, provider=provider)
    g, beta = out
    torch.ops.clover.gated_delta_net_gating.into(a, b, A_log, dt_bias, g=g, beta=beta, provider=provider)
    return g, beta


def _gated_delta_rule_into(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale=None, l2norm=False,
    max_seqlen=None, *, o, provider=None
):
    _functions.gated_delta_rule(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale, l2norm, max_seqlen,
        out=o, workspace=_functions._rt.ALLOCATE, provider=provider
    )


register(
    "gated_delta_rule",
    "(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor(a!) state, Tensor cu_seqlens, Tensor "
    "initial_state_indices, Tensor final_state_indices, float? scale=None, bool l2norm=False, int? "
    "max_seqlen=None, *, Tensor(b!) o, int? provider=None) -> ()",
    _gated_delta_rule_into,
    returns_nothing,
)


def gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale, l2norm, max_seqlen, out,
    provider, stream
):
    refuse_stream("gated_delta_rule", stream)
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    final_state_indices = index(final_state_indices)
    if out is None:
        o = new(q, (q.shape[0], v.shape[1], v.shape[2]), None, 0)
    else:
        o = out
    torch.ops.clover.gated_delta_rule(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale, l2norm, max_seqlen, o=o,
        provider=provider
    )
    return o


def _preview_gated_delta_rule_fake(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale=None, l2norm=False, read="bidirectional",
    max_seqlen=None, *, provider=None
):
    return new(q, (q.shape[0], v.shape[1], v.shape[2]), None, 0)


register(
    "preview_gated_delta_rule",
    "(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor state, Tensor cu_seqlens, Tensor "
    "initial_state_indices, float? scale=None, bool l2norm=False, str read=\"bidirectional\", int? max_seqlen=None,"
    " *, int? provider=None) -> Tensor",
    _functions.preview_gated_delta_rule,
    _preview_gated_delta_rule_fake,
)


def _preview_gated_delta_rule_into(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale=None, l2norm=False, read="bidirectional",
    max_seqlen=None, *, o, provider=None
):
    _functions.preview_gated_delta_rule(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen, out=o,
        workspace=_functions._rt.ALLOCATE, provider=provider
    )


register(
    "preview_gated_delta_rule.into",
    "(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor state, Tensor cu_seqlens, Tensor "
    "initial_state_indices, float? scale=None, bool l2norm=False, str read=\"bidirectional\", int? max_seqlen=None,"
    " *, Tensor(a!) o, int? provider=None) -> ()",
    _preview_gated_delta_rule_into,
    returns_nothing,
)


def preview_gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen, out, provider, stream
):
    refuse_stream("preview_gated_delta_rule", stream)
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    if out is None:
        return torch.ops.clover.preview_gated_delta_rule(
            q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen,
            provider=provider
        )
    o = out
    torch.ops.clover.preview_gated_delta_rule.into(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen, o=o,
        provider=provider
    )
    return o


def _preview_gdn_fake(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
    norm_weight=None, eps=1e-06, scale=None, read="bidirectional", max_seqlen=None, *, provider=None
):
    return new(qkv, (qkv.shape[0], a.shape[1], state.shape[2]), None, 0)


register(
    "preview_gdn",
    "(Tensor qkv, Tensor a, Tensor b, Tensor? z, Tensor conv_weight, Tensor? conv_bias, Tensor conv_state, Tensor"
    " A_log, Tensor dt_bias, Tensor state, Tensor cu_seqlens, Tensor initial_state_indices, Tensor? "
    "norm_weight=None, float eps=1e-06, float? scale=None, str read=\"bidirectional\", int? max_seqlen=None, *, "
    "int? provider=None) -> Tensor",
    _functions.preview_gdn,
    _preview_gdn_fake,
)


def _preview_gdn_into(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
    norm_weight=None, eps=1e-06, scale=None, read="bidirectional", max_seqlen=None, *, o, provider=None
):
    _functions.preview_gdn(
        qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
        norm_weight, eps, scale, read, max_seqlen, out=o, workspace=_functions._rt.ALLOCATE, provider=provider
    )


register(
    "preview_gdn.into",
    "(Tensor qkv, Tensor a, Tensor b, Tensor? z, Tensor conv_weight, Tensor? conv_bias, Tensor conv_state, Tensor"
    " A_log, Tensor dt_bias, Tensor state, Tensor cu_seqlens, Tensor initial_state_indices, Tensor? "
    "norm_weight=None, float eps=1e-06, float? scale=None, str read=\"bidirectional\", int? max_seqlen=None, *, "
    "Tensor(a!) o, int? provider=None) -> ()",
    _preview_gdn_into,
    returns_nothing,
)


def preview_gdn(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
    norm_weight, eps, scale, read, max_seqlen, out, provider, stream
):
    refuse_stream("preview_gdn", stream)
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    if out is None:
        return torch.ops.clover.preview_gdn(
            qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
            norm_weight, eps, scale, read, max_seqlen, provider=provider
        )
    o = out
    torch.ops.clover.preview_gdn.into(
        qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
        norm_weight, eps, scale, read, max_seqlen, o=o, provider=provider
    )
    return o


def _topk_softmax_fake(logits, k, renormalize=False, *, provider=None):
    return (
        new(logits, (logits.shape[0], k), torch.int32, None), new(logits, (logits.shape[0], k), torch.float32, None)
    )


register(
    "topk_softmax",
    "(Tensor logits, int k, bool renormalize=False, *, int? provider=None) -> (Tensor, Tensor)",
    _functions.topk_softmax,
    _topk_softmax_fake,
)


def _topk_softmax_into(logits, k, renormalize=False, *, ids, weights, provider=None):
    _functions.topk_softmax(logits, k, renormalize, out=(ids, weights), provider=provider)


register(
    "topk_softmax.into",
    "(Tensor logits, int k, bool renormalize=False, *, Tensor(a!) ids, Tensor(b!) weights, int? provider=None) ->"
    " ()",
    _topk_softmax_into,
    returns_nothing,
)


def topk_softmax(logits, k, renormalize, out, provider, stream):
    refuse_stream("topk_softmax", stream)
    if out is None:
        return torch.ops.clover.topk_softmax(logits, k, renormalize, provider=provider)
    ids, weights = out
    torch.ops.clover.topk_softmax.into(logits, k, renormalize, ids=ids, weights=weights, provider=provider)
    return ids, weights


def _block_coreset_fake(
    logits, cu_seqlens, live, k, budget, mode="vote", top_p=None, renormalize=False, *, provider=None
):
    return (
        new(logits, (cu_seqlens.shape[0] - 1, logits.shape[1]), torch.bool, 0), new(cu_seqlens, (logits.shape[0], k),
        torch.int32, -1), new(logits, (logits.shape[0], k), torch.float32, 0)
    )


register(
    "block_coreset",
    "(Tensor logits, Tensor cu_seqlens, Tensor? live, int k, int budget, str mode=\"vote\", float? top_p=None, bool"
    " renormalize=False, *, int? provider=None) -> (Tensor, Tensor, Tensor)",
    _functions.block_coreset,
    _block_coreset_fake,
)


def _block_coreset_into(
    logits, cu_seqlens, live, k, budget, mode="vote", top_p=None, renormalize=False, *, coreset, ids, weights,
    provider=None
):
    _functions.block_coreset(
        logits, cu_seqlens, live, k, budget, mode, top_p, renormalize, out=(coreset, ids, weights),
        workspace=_functions._rt.ALLOCATE, provider=provider
    )


register(
    "block_coreset.into",
    "(Tensor logits, Tensor cu_seqlens, Tensor? live, int k, int budget, str mode_=\"vote\", float? top_p=None, "
    "bool renormalize=False, *, Tensor(a!) coreset, Tensor(b!) ids, Tensor(c!) weights, int? provider=None) -> ()",
    _block_coreset_into,
    returns_nothing,
)


def block_coreset(logits, cu_seqlens, live, k, budget, mode, top_p, renormalize, out, provider, stream):
    refuse_stream("block_coreset", stream)
    cu_seqlens = index(cu_seqlens)
    if out is None:
        return torch.ops.clover.block_coreset(
            logits, cu_seqlens, live, k, budget, mode, top_p, renormalize, provider=provider
        )
    coreset, ids, weights = out
    torch.ops.clover.block_coreset.into(
        logits, cu_seqlens, live, k, budget, mode, top_p, renormalize, coreset=coreset, ids=ids, weights=weights,
        provider=provider
    )
    return coreset, ids, weights


def _live_row_routes_fake(ids, weights, live, *, provider=None):
    return (
        new(ids, (ids.shape[0], ids.shape[1]), torch.int32, None), new(weights, (ids.shape[0], ids.shape[1]),
        torch.float32, None), new(ids, (ids.shape[0],), torch.int32, None), new(ids, (1,), torch.int32, None)
    )


register(
    "live_row_routes",
    "(Tensor ids, Tensor weights, Tensor live, *, int? provider=None) -> (Tensor, Tensor, Tensor, Tensor)",
    _functions.live_row_routes,
    _live_row_routes_fake,
)


def _live_row_routes_into(ids, weights, live, *, live_ids, live_weights, rows, count, provider=None):
    _functions.live_row_routes(ids, weights, live, out=(live_ids, live_weights, rows, count), provider=provider)


register(
    "live_row_routes.into",
    "(Tensor ids, Tensor weights, Tensor live, *, Tensor(a!) live_ids, Tensor(b!) live_weights, Tensor(c!) rows, "
    "Tensor(d!) count, int? provider=None) -> ()",
    _live_row_routes_into,
    returns_nothing,
)


def live_row_routes(ids, weights, live, out, provider, stream):
    refuse_stream("live_row_routes", stream)
    ids = index(ids)
    if out is None:
        return torch.ops.clover.live_row_routes(ids, weights, live, provider=provider)
    live_ids, live_weights, rows, count = out
    torch.ops.clover.live_row_routes.into(
        ids, weights, live, live_ids=live_ids, live_weights=live_weights, rows=rows, count=count, provider=provider
    )
    return live_ids, live_weights, rows, count


def _merge_live_rows_into(fresh, cache, live, *, out, provider=None):
    _functions.merge_live_rows(fresh, cache, live, out=out, provider=provider)


register(
    "merge_live_rows",
    "(Tensor fresh, Tensor(a!) cache, Tensor live, *, Tensor(b!) out, int? provider=None) -> ()",
    _merge_live_rows_into,
    returns_nothing,
)


def merge_live_rows(fresh, cache, live, out, provider, stream):
    refuse_stream("merge_live_rows", stream)
    if out is None:
        out = new(fresh, (fresh.shape[0], fresh.shape[1]), None, None)
    torch.ops.clover.merge_live_rows(fresh, cache, live, out=out, provider=provider)
    return out


def _fused_moe_fake(
    x, w13, w2, ids, weights, shared_w13=None, shared_w2=None, shared_gate=None, routed_scale=1.0,
    weight_layout="dense", *, provider=None
):
    return new(x, (x.shape[0], x.shape[1]), None, None)


register(
    "fused_moe",
    "(Tensor x, Tensor w13, Tensor w2, Tensor ids, Tensor weights, Tensor? shared_w13=None, Tensor? "
    "shared_w2=None, Tensor? shared_gate=None, float routed_scale=1.0, str weight_layout=\"dense\", *, int? "
    "provider=None) -> Tensor",
    _functions.fused_moe,
    _fused_moe_fake,
)


def _fused_moe_into(
    x, w13, w2, ids, weights, shared_w13=None, shared_w2=None, shared_gate=None, routed_scale=1.0,
    weight_layout="dense", *, y, provider=None
):
    _functions.fused_moe(
        x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout, out=y,
        workspace=_functions._rt.ALLOCATE, provider=provider
    )


register(
    "fused_moe.into",
    "(Tensor x, Tensor w13, Tensor w2, Tensor ids, Tensor weights, Tensor? shared_w13=None, Tensor? "
    "shared_w2=None, Tensor? shared_gate=None, float routed_scale=1.0, str weight_layout=\"dense\", *, Tensor(a!) "
    "y, int? provider=None) -> ()",
    _fused_moe_into,
    returns_nothing,
)


def fused_moe(
    x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout, out, provider, stream
):
    refuse_stream("fused_moe", stream)
    ids = index(ids)
    if out is None:
        return torch.ops.clover.fused_moe(
            x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout, provider=provider
        )
    y = out
    torch.ops.clover.fused_moe.into(
        x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout, y=y,
        provider=provider
    )
    return y


def _rotary_embedding_into(positions, q, k, cos_sin, interleaved=False, *, provider=None):
    _functions.rotary_embedding(positions, q, k, cos_sin, interleaved, provider=provider)


register(
    "rotary_embedding",
    "(Tensor positions, Tensor(a!) q, Tensor(b!) k, Tensor cos_sin, bool interleaved=False, *, int? "
    "provider=None) -> ()",
    _rotary_embedding_into,
    returns_nothing,
)


def rotary_embedding(positions, q, k, cos_sin, interleaved, provider, stream):
    refuse_stream("rotary_embedding", stream)
    positions = index(positions)
    torch.ops.clover.rotary_embedding(positions, q, k, cos_sin, interleaved, provider=provider)


def _rearrange_into(src, dst, *, provider=None):
    _functions.rearrange(src, dst, provider=provider)


register(
    "rearrange",
    "(Tensor src, Tensor(a!) dst, *, int? provider=None) -> ()",
    _rearrange_into,
    returns_nothing,
)


def rearrange(src, dst, provider, stream):
    refuse_stream("rearrange", stream)
    torch.ops.clover.rearrange(src, dst, provider=provider)


def _cast_into(src, dst, *, provider=None):
    _functions.cast(src, dst, provider=provider)


register(
    "cast",
    "(Tensor src, Tensor(a!) dst, *, int? provider=None) -> ()",
    _cast_into,
    returns_nothing,
)


def cast(src, dst, provider, stream):
    refuse_stream("cast", stream)
    torch.ops.clover.cast(src, dst, provider=provider)


def _rms_norm_gated_fake(x, weight, z, eps=1e-06, *, provider=None):
    return new(x, (x.shape[0], x.shape[1], x.shape[2]), None, None)


register(
    "rms_norm_gated",
    "(Tensor x, Tensor weight, Tensor z, float eps=1e-06, *, int? provider=None) -> Tensor",
    _functions.rms_norm_gated,
    _rms_norm_gated_fake,
)


def _rms_norm_gated_into(x, weight, z, eps=1e-06, *, y, provider=None):
    _functions.rms_norm_gated(x, weight, z, eps, out=y, provider=provider)


register(
    "rms_norm_gated.into",
    "(Tensor x, Tensor weight, Tensor z, float eps=1e-06, *, Tensor(a!) y, int? provider=None) -> ()",
    _rms_norm_gated_into,
    returns_nothing,
)


def rms_norm_gated(x, weight, z, eps, out, provider, stream):
    refuse_stream("rms_norm_gated", stream)
    if out is None:
        return torch.ops.clover.rms_norm_gated(x, weight, z, eps, provider=provider)
    y = out
    torch.ops.clover.rms_norm_gated.into(x, weight, z, eps, y=y, provider=provider)
    return y
