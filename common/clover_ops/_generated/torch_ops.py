# Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit.
"""torch.ops.clover.*; importing this module registers them."""

import torch

from .._torch_library import index, new, register, returns_nothing
from . import functions as _functions


def _causal_conv1d_into(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation="none",
    max_seqlen=None, *, y
):
    _functions.causal_conv1d(
        x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation, max_seqlen,
        out=y
    )


register(
    "causal_conv1d",
    "(Tensor x, Tensor weight, Tensor? bias, Tensor(a!) conv_state, Tensor cu_seqlens, Tensor "
    "initial_state_indices, Tensor final_state_indices, str activation=\"none\", int? max_seqlen=None, *, "
    "Tensor(b!) y) -> ()",
    _causal_conv1d_into,
    returns_nothing,
)


def causal_conv1d(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation, max_seqlen, out
):
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    final_state_indices = index(final_state_indices)
    if out is None:
        y = new(x, (x.shape[0], x.shape[1]), None, 0)
    else:
        y = out
    torch.ops.clover.causal_conv1d(
        x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation, max_seqlen, y=y
    )
    return y


def _preview_conv1d_fake(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation="none", max_seqlen=None
):
    return new(x, (x.shape[0], x.shape[1]), None, 0)


register(
    "preview_conv1d",
    "(Tensor x, Tensor weight, Tensor? bias, Tensor conv_state, Tensor cu_seqlens, Tensor initial_state_indices, "
    "str activation=\"none\", int? max_seqlen=None) -> Tensor",
    _functions.preview_conv1d,
    _preview_conv1d_fake,
)


def _preview_conv1d_into(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation="none", max_seqlen=None, *, y
):
    _functions.preview_conv1d(
        x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen, out=y
    )


register(
    "preview_conv1d.into",
    "(Tensor x, Tensor weight, Tensor? bias, Tensor conv_state, Tensor cu_seqlens, Tensor initial_state_indices, "
    "str activation=\"none\", int? max_seqlen=None, *, Tensor(a!) y) -> ()",
    _preview_conv1d_into,
    returns_nothing,
)


def preview_conv1d(x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen, out):
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    if out is None:
        return torch.ops.clover.preview_conv1d(
            x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen
        )
    y = out
    torch.ops.clover.preview_conv1d.into(
        x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen, y=y
    )
    return y


def _gated_delta_net_gating_fake(a, b, A_log, dt_bias):
    return (
        new(A_log, (a.shape[0], a.shape[1]), torch.float32, None), new(A_log, (a.shape[0], a.shape[1]), torch.float32,
        None)
    )


register(
    "gated_delta_net_gating",
    "(Tensor a, Tensor b, Tensor A_log, Tensor dt_bias) -> (Tensor, Tensor)",
    _functions.gated_delta_net_gating,
    _gated_delta_net_gating_fake,
)


def _gated_delta_net_gating_into(a, b, A_log, dt_bias, *, g, beta):
    _functions.gated_delta_net_gating(a, b, A_log, dt_bias, out=(g, beta))


register(
    "gated_delta_net_gating.into",
    "(Tensor a, Tensor b, Tensor A_log, Tensor dt_bias, *, Tensor(a!) g, Tensor(b!) beta) -> ()",
    _gated_delta_net_gating_into,
    returns_nothing,
)


def gated_delta_net_gating(a, b, A_log, dt_bias, out):
    if out is None:
        return torch.ops.clover.gated_delta_net_gating(a, b, A_log, dt_bias)
    g, beta = out
    torch.ops.clover.gated_delta_net_gating.into(a, b, A_log, dt_bias, g=g, beta=beta)
    return g, beta


def _gated_delta_rule_into(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale=None, l2norm=False,
    max_seqlen=None, *, o
):
    _functions.gated_delta_rule(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale, l2norm, max_seqlen,
        out=o, workspace=_functions._rt.ALLOCATE
    )


register(
    "gated_delta_rule",
    "(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor(a!) state, Tensor cu_seqlens, Tensor "
    "initial_state_indices, Tensor final_state_indices, float? scale=None, bool l2norm=False, int? "
    "max_seqlen=None, *, Tensor(b!) o) -> ()",
    _gated_delta_rule_into,
    returns_nothing,
)


def gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale, l2norm, max_seqlen, out
):
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    final_state_indices = index(final_state_indices)
    if out is None:
        o = new(q, (q.shape[0], v.shape[1], v.shape[2]), None, 0)
    else:
        o = out
    torch.ops.clover.gated_delta_rule(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale, l2norm, max_seqlen, o=o
    )
    return o


def _preview_gated_delta_rule_fake(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale=None, l2norm=False, read="bidirectional",
    max_seqlen=None
):
    return new(q, (q.shape[0], v.shape[1], v.shape[2]), None, 0)


register(
    "preview_gated_delta_rule",
    "(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor state, Tensor cu_seqlens, Tensor "
    "initial_state_indices, float? scale=None, bool l2norm=False, str read=\"bidirectional\", int? max_seqlen=None)"
    " -> Tensor",
    _functions.preview_gated_delta_rule,
    _preview_gated_delta_rule_fake,
)


def _preview_gated_delta_rule_into(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale=None, l2norm=False, read="bidirectional",
    max_seqlen=None, *, o
):
    _functions.preview_gated_delta_rule(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen, out=o,
        workspace=_functions._rt.ALLOCATE
    )


register(
    "preview_gated_delta_rule.into",
    "(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor state, Tensor cu_seqlens, Tensor "
    "initial_state_indices, float? scale=None, bool l2norm=False, str read=\"bidirectional\", int? max_seqlen=None,"
    " *, Tensor(a!) o) -> ()",
    _preview_gated_delta_rule_into,
    returns_nothing,
)


def preview_gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen, out
):
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    if out is None:
        return torch.ops.clover.preview_gated_delta_rule(
            q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen
        )
    o = out
    torch.ops.clover.preview_gated_delta_rule.into(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen, o=o
    )
    return o


def _preview_gdn_fake(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
    norm_weight=None, eps=1e-06, scale=None, read="bidirectional", max_seqlen=None
):
    return new(qkv, (qkv.shape[0], a.shape[1], state.shape[2]), None, 0)


register(
    "preview_gdn",
    "(Tensor qkv, Tensor a, Tensor b, Tensor? z, Tensor conv_weight, Tensor? conv_bias, Tensor conv_state, Tensor"
    " A_log, Tensor dt_bias, Tensor state, Tensor cu_seqlens, Tensor initial_state_indices, Tensor? "
    "norm_weight=None, float eps=1e-06, float? scale=None, str read=\"bidirectional\", int? max_seqlen=None) -> "
    "Tensor",
    _functions.preview_gdn,
    _preview_gdn_fake,
)


def _preview_gdn_into(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
    norm_weight=None, eps=1e-06, scale=None, read="bidirectional", max_seqlen=None, *, o
):
    _functions.preview_gdn(
        qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
        norm_weight, eps, scale, read, max_seqlen, out=o, workspace=_functions._rt.ALLOCATE
    )


register(
    "preview_gdn.into",
    "(Tensor qkv, Tensor a, Tensor b, Tensor? z, Tensor conv_weight, Tensor? conv_bias, Tensor conv_state, Tensor"
    " A_log, Tensor dt_bias, Tensor state, Tensor cu_seqlens, Tensor initial_state_indices, Tensor? "
    "norm_weight=None, float eps=1e-06, float? scale=None, str read=\"bidirectional\", int? max_seqlen=None, *, "
    "Tensor(a!) o) -> ()",
    _preview_gdn_into,
    returns_nothing,
)


def preview_gdn(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
    norm_weight, eps, scale, read, max_seqlen, out
):
    cu_seqlens = index(cu_seqlens)
    initial_state_indices = index(initial_state_indices)
    if out is None:
        return torch.ops.clover.preview_gdn(
            qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
            norm_weight, eps, scale, read, max_seqlen
        )
    o = out
    torch.ops.clover.preview_gdn.into(
        qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
        norm_weight, eps, scale, read, max_seqlen, o=o
    )
    return o


def _topk_softmax_fake(logits, k, renormalize=False):
    return (
        new(logits, (logits.shape[0], k), torch.int32, None), new(logits, (logits.shape[0], k), torch.float32, None)
    )


register(
    "topk_softmax",
    "(Tensor logits, int k, bool renormalize=False) -> (Tensor, Tensor)",
    _functions.topk_softmax,
    _topk_softmax_fake,
)


def _topk_softmax_into(logits, k, renormalize=False, *, ids, weights):
    _functions.topk_softmax(logits, k, renormalize, out=(ids, weights))


register(
    "topk_softmax.into",
    "(Tensor logits, int k, bool renormalize=False, *, Tensor(a!) ids, Tensor(b!) weights) -> ()",
    _topk_softmax_into,
    returns_nothing,
)


def topk_softmax(logits, k, renormalize, out):
    if out is None:
        return torch.ops.clover.topk_softmax(logits, k, renormalize)
    ids, weights = out
    torch.ops.clover.topk_softmax.into(logits, k, renormalize, ids=ids, weights=weights)
    return ids, weights


def _block_coreset_fake(logits, cu_seqlens, live, k, budget, mode="vote", top_p=None, renormalize=False):
    return (
        new(logits, (cu_seqlens.shape[0] - 1, logits.shape[1]), torch.bool, 0), new(cu_seqlens, (logits.shape[0], k),
        torch.int32, -1), new(logits, (logits.shape[0], k), torch.float32, 0)
    )


register(
    "block_coreset",
    "(Tensor logits, Tensor cu_seqlens, Tensor? live, int k, int budget, str mode=\"vote\", float? top_p=None, bool"
    " renormalize=False) -> (Tensor, Tensor, Tensor)",
    _functions.block_coreset,
    _block_coreset_fake,
)


def _block_coreset_into(
    logits, cu_seqlens, live, k, budget, mode="vote", top_p=None, renormalize=False, *, coreset, ids, weights
):
    _functions.block_coreset(
        logits, cu_seqlens, live, k, budget, mode, top_p, renormalize, out=(coreset, ids, weights),
        workspace=_functions._rt.ALLOCATE
    )


register(
    "block_coreset.into",
    "(Tensor logits, Tensor cu_seqlens, Tensor? live, int k, int budget, str mode_=\"vote\", float? top_p=None, "
    "bool renormalize=False, *, Tensor(a!) coreset, Tensor(b!) ids, Tensor(c!) weights) -> ()",
    _block_coreset_into,
    returns_nothing,
)


def block_coreset(logits, cu_seqlens, live, k, budget, mode, top_p, renormalize, out):
    cu_seqlens = index(cu_seqlens)
    if out is None:
        return torch.ops.clover.block_coreset(logits, cu_seqlens, live, k, budget, mode, top_p, renormalize)
    coreset, ids, weights = out
    torch.ops.clover.block_coreset.into(
        logits, cu_seqlens, live, k, budget, mode, top_p, renormalize, coreset=coreset, ids=ids, weights=weights
    )
    return coreset, ids, weights


def _live_row_routes_fake(ids, weights, live):
    return (
        new(ids, (ids.shape[0], ids.shape[1]), torch.int32, None), new(weights, (ids.shape[0], ids.shape[1]),
        torch.float32, None), new(ids, (ids.shape[0],), torch.int32, None), new(ids, (1,), torch.int32, None)
    )


register(
    "live_row_routes",
    "(Tensor ids, Tensor weights, Tensor live) -> (Tensor, Tensor, Tensor, Tensor)",
    _functions.live_row_routes,
    _live_row_routes_fake,
)


def _live_row_routes_into(ids, weights, live, *, live_ids, live_weights, rows, count):
    _functions.live_row_routes(ids, weights, live, out=(live_ids, live_weights, rows, count))


register(
    "live_row_routes.into",
    "(Tensor ids, Tensor weights, Tensor live, *, Tensor(a!) live_ids, Tensor(b!) live_weights, Tensor(c!) rows, "
    "Tensor(d!) count) -> ()",
    _live_row_routes_into,
    returns_nothing,
)


def live_row_routes(ids, weights, live, out):
    ids = index(ids)
    if out is None:
        return torch.ops.clover.live_row_routes(ids, weights, live)
    live_ids, live_weights, rows, count = out
    torch.ops.clover.live_row_routes.into(
        ids, weights, live, live_ids=live_ids, live_weights=live_weights, rows=rows, count=count
    )
    return live_ids, live_weights, rows, count


def _merge_live_rows_into(fresh, cache, live, *, out):
    _functions.merge_live_rows(fresh, cache, live, out=out)


register(
    "merge_live_rows",
    "(Tensor fresh, Tensor(a!) cache, Tensor live, *, Tensor(b!) out) -> ()",
    _merge_live_rows_into,
    returns_nothing,
)


def merge_live_rows(fresh, cache, live, out):
    if out is None:
        out = new(fresh, (fresh.shape[0], fresh.shape[1]), None, None)
    torch.ops.clover.merge_live_rows(fresh, cache, live, out=out)
    return out


def _fused_moe_fake(
    x, w13, w2, ids, weights, shared_w13=None, shared_w2=None, shared_gate=None, routed_scale=1.0, weight_layout="dense"
):
    return new(x, (x.shape[0], x.shape[1]), None, None)


register(
    "fused_moe",
    "(Tensor x, Tensor w13, Tensor w2, Tensor ids, Tensor weights, Tensor? shared_w13=None, Tensor? "
    "shared_w2=None, Tensor? shared_gate=None, float routed_scale=1.0, str weight_layout=\"dense\") -> Tensor",
    _functions.fused_moe,
    _fused_moe_fake,
)


def _fused_moe_into(
    x, w13, w2, ids, weights, shared_w13=None, shared_w2=None, shared_gate=None, routed_scale=1.0,
    weight_layout="dense", *, y
):
    _functions.fused_moe(
        x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout, out=y,
        workspace=_functions._rt.ALLOCATE
    )


register(
    "fused_moe.into",
    "(Tensor x, Tensor w13, Tensor w2, Tensor ids, Tensor weights, Tensor? shared_w13=None, Tensor? "
    "shared_w2=None, Tensor? shared_gate=None, float routed_scale=1.0, str weight_layout=\"dense\", *, Tensor(a!) "
    "y) -> ()",
    _fused_moe_into,
    returns_nothing,
)


def fused_moe(x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout, out):
    ids = index(ids)
    if out is None:
        return torch.ops.clover.fused_moe(
            x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout
        )
    y = out
    torch.ops.clover.fused_moe.into(
        x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout, y=y
    )
    return y


def _rotary_embedding_into(positions, q, k, cos_sin, interleaved=False):
    _functions.rotary_embedding(positions, q, k, cos_sin, interleaved)


register(
    "rotary_embedding",
    "(Tensor positions, Tensor(a!) q, Tensor(b!) k, Tensor cos_sin, bool interleaved=False) -> ()",
    _rotary_embedding_into,
    returns_nothing,
)


def rotary_embedding(positions, q, k, cos_sin, interleaved):
    positions = index(positions)
    torch.ops.clover.rotary_embedding(positions, q, k, cos_sin, interleaved)


def _rearrange_into(src, dst):
    _functions.rearrange(src, dst)


register(
    "rearrange",
    "(Tensor src, Tensor(a!) dst) -> ()",
    _rearrange_into,
    returns_nothing,
)


def rearrange(src, dst):
    torch.ops.clover.rearrange(src, dst)


def _cast_into(src, dst):
    _functions.cast(src, dst)


register(
    "cast",
    "(Tensor src, Tensor(a!) dst) -> ()",
    _cast_into,
    returns_nothing,
)


def cast(src, dst):
    torch.ops.clover.cast(src, dst)


def _rms_norm_gated_fake(x, weight, z, eps=1e-06):
    return new(x, (x.shape[0], x.shape[1], x.shape[2]), None, None)


register(
    "rms_norm_gated",
    "(Tensor x, Tensor weight, Tensor z, float eps=1e-06) -> Tensor",
    _functions.rms_norm_gated,
    _rms_norm_gated_fake,
)


def _rms_norm_gated_into(x, weight, z, eps=1e-06, *, y):
    _functions.rms_norm_gated(x, weight, z, eps, out=y)


register(
    "rms_norm_gated.into",
    "(Tensor x, Tensor weight, Tensor z, float eps=1e-06, *, Tensor(a!) y) -> ()",
    _rms_norm_gated_into,
    returns_nothing,
)


def rms_norm_gated(x, weight, z, eps, out):
    if out is None:
        return torch.ops.clover.rms_norm_gated(x, weight, z, eps)
    y = out
    torch.ops.clover.rms_norm_gated.into(x, weight, z, eps, y=y)
    return y
