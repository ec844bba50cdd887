# Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit.
"""Clover's operators on torch, NumPy and DLPack tensors."""

from .. import _runtime as _rt

__all__ = [
    "block_coreset",
    "block_coreset_workspace_size",
    "cast",
    "causal_conv1d",
    "fused_moe",
    "fused_moe_workspace_size",
    "gated_delta_net_gating",
    "gated_delta_rule",
    "gated_delta_rule_workspace_size",
    "live_row_routes",
    "merge_live_rows",
    "preview_conv1d",
    "preview_gated_delta_rule",
    "preview_gated_delta_rule_workspace_size",
    "preview_gdn",
    "preview_gdn_workspace_size",
    "rearrange",
    "rms_norm_gated",
    "rotary_embedding",
    "topk_softmax",
]


def causal_conv1d(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation="none",
    max_seqlen=None, *, out=None, provider=None, stream=None
):
    """Causal short convolution. Convolve each packed sequence causally, seeded with its slot's past inputs, and store
    its last inputs.

        y[t, c] = act(bias[c] + sum_j weight[c, j] * z[t + j, c]), z = the slot's KC-1 past inputs, then x

    Args:
        x: [T, C], X: inputs, sequences packed one after another.
        weight: [C, KC], X: one filter per channel, oldest tap first.
        bias: [C], X, or None: added before the activation.
        conv_state: [S, C, KC-1], X, in/out: pool of past inputs, oldest first.
        cu_seqlens: [N+1], int32: where each sequence starts and ends.
        initial_state_indices: [N], int32: slot read; negative: start from zeros.
        final_state_indices: [N], int32: slot written; negative: discard.
        activation: 'none', 'silu': applied to the output.
        max_seqlen: int: longest sequence expected; guides kernel choice only. Default: T.
        out: where to write instead of new tensors.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        y: [T, C], X: outputs (0 in rows of no sequence).

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Mamba (arXiv 2312.00752), section 3.4; vLLM causal_conv1d.
    """
    if _rt.compiling():
        return _rt.traced.causal_conv1d(
            x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation, max_seqlen,
            out, provider, stream
        )
    if out is None:
        try:
            y = _rt.new(x, (x.shape[0], x.shape[1]), None, 0)
        except _rt.UNSIZED as error:
            y = _rt.Unsized(error)
    else:
        y = out
    tensors = (x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, y)
    _rt.run("causal_conv1d", tensors, (4, 5, 6), (activation, max_seqlen), provider, stream)
    return y


def preview_conv1d(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation="none", max_seqlen=None, *, out=None,
    provider=None, stream=None
):
    """Preview convolution. Convolve each packed block, seeded with its slot's past inputs, and leave the slot as it
    is.

        as causal_conv1d; conv_state is read only

    Args:
        x: [T, C], X: inputs, blocks packed one after another.
        weight: [C, KC], X: one filter per channel, oldest tap first.
        bias: [C], X, or None: added before the activation.
        conv_state: [S, C, KC-1], X: pool of past inputs, oldest first.
        cu_seqlens: [N+1], int32: where each block starts and ends.
        initial_state_indices: [N], int32: slot read; negative: start from zeros.
        activation: 'none', 'silu': applied to the output.
        max_seqlen: int: longest block expected; guides kernel choice only. Default: T.
        out: where to write instead of new tensors.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        y: [T, C], X: outputs (0 in rows of no sequence).

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: causal_conv1d.
    """
    if _rt.compiling():
        return _rt.traced.preview_conv1d(
            x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen, out, provider,
            stream
        )
    if out is None:
        try:
            y = _rt.new(x, (x.shape[0], x.shape[1]), None, 0)
        except _rt.UNSIZED as error:
            y = _rt.Unsized(error)
    else:
        y = out
    tensors = (x, weight, bias, conv_state, cu_seqlens, initial_state_indices, y)
    _rt.run("preview_conv1d", tensors, (4, 5), (activation, max_seqlen), provider, stream)
    return y


def gated_delta_net_gating(a, b, A_log, dt_bias, *, out=None, provider=None, stream=None):
    """Gating of the gated delta net. Turn the two gate projections into the log decay and the write strength of each
    value head.

        g = -exp(A_log) * softplus(a + dt_bias), beta = sigmoid(b)

    Args:
        a: [T, HV], X: decay projection.
        b: [T, HV], X: write-strength projection.
        A_log: [HV], float32: logarithm of the decay rate.
        dt_bias: [HV], X: added to a.
        out: where to write instead of new tensors, in order.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        g: [T, HV], float32: log decay, at most 0.
        beta: [T, HV], float32: write strength in [0, 1].

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Gated Delta Networks (arXiv 2412.06464); Mamba-2 (arXiv 2405.21060) for A_log and dt_bias.
    """
    if _rt.compiling():
        return _rt.traced.gated_delta_net_gating(a, b, A_log, dt_bias, out, provider, stream)
    if out is None:
        try:
            g = _rt.new(A_log, (a.shape[0], a.shape[1]), 'float32', None)
            beta = _rt.new(A_log, (a.shape[0], a.shape[1]), 'float32', None)
        except _rt.UNSIZED as error:
            g = beta = _rt.Unsized(error)
    else:
        g, beta = _rt.unpack("gated_delta_net_gating", out, ("g", "beta"))
    tensors = (a, b, A_log, dt_bias, g, beta)
    _rt.run("gated_delta_net_gating", tensors, (), (), provider, stream)
    return g, beta


def gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale=None, l2norm=False,
    max_seqlen=None, *, out=None, workspace=None, provider=None, stream=None
):
    """Gated delta rule (commit). Replay each packed sequence through the gated delta rule, exactly and causally,
    advancing its state.

        S <- exp(g_t) S; u = beta_t (v_t - S k_t); S <- S + u k_t^T; o_t = scale S q_t

    Args:
        q: [T, H, K], X: queries.
        k: [T, H, K], X: keys, of about unit length unless l2norm.
        v: [T, HV, V], X: values; value head j uses query-key head j // (HV/H).
        g: [T, HV], float32: log decay.
        beta: [T, HV], float32: write strength.
        state: [S, HV, V, K], float32, in/out: pool of recurrent states.
        cu_seqlens: [N+1], int32: where each sequence starts and ends.
        initial_state_indices: [N], int32: slot read; negative: start from zeros.
        final_state_indices: [N], int32: slot written; negative: discard.
        scale: float: multiplies the output. Default: K ** -0.5.
        l2norm: bool: normalise each q and k: times rsqrt(sum of squares + 1e-6).
        max_seqlen: int: longest sequence expected; guides kernel choice only. Default: T.
        out: where to write instead of new tensors.
        workspace: scratch of `gated_delta_rule_workspace_size(...)` bytes; made when None, unless `out` is given.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        o: [T, HV, V], X: outputs (0 in rows of no sequence).

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.
        MissingWorkspace: the workspace given is too small or misaligned, or `out` came without one.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Gated Delta Networks (arXiv 2412.06464), equation 10.
    """
    if _rt.compiling():
        return _rt.traced.gated_delta_rule(
            q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale, l2norm, max_seqlen,
            out, provider, stream
        )
    if out is None:
        try:
            o = _rt.new(q, (q.shape[0], v.shape[1], v.shape[2]), None, 0)
        except _rt.UNSIZED as error:
            o = _rt.Unsized(error)
    else:
        o = out
    tensors = (q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, o)
    _rt.run_with_workspace(
        "gated_delta_rule", tensors, (6, 7, 8), (scale, l2norm, max_seqlen), provider, stream, workspace, out is None
    )
    return o


def gated_delta_rule_workspace_size(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale=None, l2norm=False,
    max_seqlen=None, *, provider=None
):
    """Bytes of workspace that `gated_delta_rule` with these arguments may need. Reads no data."""
    inputs = (q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices)
    return _rt.workspace_size("gated_delta_rule", inputs, (6, 7, 8), (scale, l2norm, max_seqlen), provider)


def preview_gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale=None, l2norm=False, read="bidirectional",
    max_seqlen=None, *, out=None, workspace=None, provider=None, stream=None
):
    """Preview gated delta rule. Read each packed block against its slot's state, in both directions by default, and
    leave the state as it is.

        o_t = scale (S_t + R_{t+1}) q_t: S from the slot forwards, R from zero backwards, both by the gated delta rule

    Args:
        q: [T, H, K], X: queries.
        k: [T, H, K], X: keys, of about unit length unless l2norm.
        v: [T, HV, V], X: values; value head j uses query-key head j // (HV/H).
        g: [T, HV], float32: log decay.
        beta: [T, HV], float32: write strength.
        state: [S, HV, V, K], float32: pool of recurrent states.
        cu_seqlens: [N+1], int32: where each block starts and ends.
        initial_state_indices: [N], int32: slot read; negative: start from zeros.
        scale: float: multiplies the output. Default: K ** -0.5.
        l2norm: bool: normalise each q and k: times rsqrt(sum of squares + 1e-6).
        read: 'bidirectional', 'block', 'causal': which history each token reads.
        max_seqlen: int: longest block expected; guides kernel choice only. Default: T.
        out: where to write instead of new tensors.
        workspace: scratch of `preview_gated_delta_rule_workspace_size(...)` bytes; made when None, unless `out` is given.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        o: [T, HV, V], X: outputs (0 in rows of no sequence).

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.
        MissingWorkspace: the workspace given is too small or misaligned, or `out` came without one.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Gated Delta Networks (arXiv 2412.06464); the bidirectional read as in SANA-WM.
    """
    if _rt.compiling():
        return _rt.traced.preview_gated_delta_rule(
            q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen, out, provider,
            stream
        )
    if out is None:
        try:
            o = _rt.new(q, (q.shape[0], v.shape[1], v.shape[2]), None, 0)
        except _rt.UNSIZED as error:
            o = _rt.Unsized(error)
    else:
        o = out
    tensors = (q, k, v, g, beta, state, cu_seqlens, initial_state_indices, o)
    _rt.run_with_workspace(
        "preview_gated_delta_rule", tensors, (6, 7), (scale, l2norm, read, max_seqlen), provider, stream, workspace, out
        is None
    )
    return o


def preview_gated_delta_rule_workspace_size(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale=None, l2norm=False, read="bidirectional",
    max_seqlen=None, *, provider=None
):
    """Bytes of workspace that `preview_gated_delta_rule` with these arguments may need. Reads no data."""
    inputs = (q, k, v, g, beta, state, cu_seqlens, initial_state_indices)
    return _rt.workspace_size("preview_gated_delta_rule", inputs, (6, 7), (scale, l2norm, read, max_seqlen), provider)


def preview_gdn(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
    norm_weight=None, eps=1e-06, scale=None, read="bidirectional", max_seqlen=None, *, out=None, workspace=None,
    provider=None, stream=None
):
    """Preview of a whole GDN layer core. Preview convolution with silu, gating, bidirectional delta rule with l2norm,
    and the gated norm in one call.

        q | k | v = preview_conv1d(qkv, silu); g, beta = gating(a, b); o = preview_gated_delta_rule(q, k, v, g, beta); rms_norm_gated

    Args:
        qkv: [T, C], X: projected q | k | v, before the convolution.
        a: [T, HV], X: decay projection.
        b: [T, HV], X: write-strength projection.
        z: [T, HV, V], X, or None: output gate.
        conv_weight: [C, KC], X: one filter per channel, oldest tap first.
        conv_bias: [C], X, or None: added before the silu.
        conv_state: [SC, C, KC-1], X: pool of past inputs, oldest first.
        A_log: [HV], float32: logarithm of the decay rate.
        dt_bias: [HV], X: added to a.
        state: [S, HV, V, K], float32: pool of recurrent states.
        cu_seqlens: [N+1], int32: where each block starts and ends.
        initial_state_indices: [N], int32: slot read in both pools; negative: start from zeros.
        norm_weight: [V], X, or None: weight of the gated norm.
        eps: float: added to the mean square in the norm.
        scale: float: multiplies the delta rule's output. Default: K ** -0.5.
        read: 'bidirectional', 'block', 'causal': which history each token reads.
        max_seqlen: int: longest block expected; guides kernel choice only. Default: T.
        out: where to write instead of new tensors.
        workspace: scratch of `preview_gdn_workspace_size(...)` bytes; made when None, unless `out` is given.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        o: [T, HV, V], X: outputs (0 in rows of no sequence).

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.
        MissingWorkspace: the workspace given is too small or misaligned, or `out` came without one.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Gated Delta Networks (arXiv 2412.06464), figure 1; Qwen3-Next for the layer.
    """
    if _rt.compiling():
        return _rt.traced.preview_gdn(
            qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
            norm_weight, eps, scale, read, max_seqlen, out, provider, stream
        )
    if out is None:
        try:
            o = _rt.new(qkv, (qkv.shape[0], a.shape[1], state.shape[2]), None, 0)
        except _rt.UNSIZED as error:
            o = _rt.Unsized(error)
    else:
        o = out
    tensors = (
        qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
        norm_weight, o
    )
    _rt.run_with_workspace(
        "preview_gdn", tensors, (10, 11), (eps, scale, read, max_seqlen), provider, stream, workspace, out is None
    )
    return o


def preview_gdn_workspace_size(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
    norm_weight=None, eps=1e-06, scale=None, read="bidirectional", max_seqlen=None, *, provider=None
):
    """Bytes of workspace that `preview_gdn` with these arguments may need. Reads no data."""
    inputs = (
        qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices,
        norm_weight
    )
    return _rt.workspace_size("preview_gdn", inputs, (10, 11), (eps, scale, read, max_seqlen), provider)


def topk_softmax(logits, k, renormalize=False, *, out=None, provider=None, stream=None):
    """Top-k routing. Choose each token's k best experts by logit and weight them by the softmax over all experts.

        ids = the k largest logits (ties to the lower index); weights = softmax(logits)[ids], optionally renormalised

    Args:
        logits: [T, E], X: router logits.
        k: int: experts per token.
        renormalize: bool: divide by the sum over the chosen experts.
        out: where to write instead of new tensors, in order.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        ids: [T, k], int32: chosen experts, best first; -1 where a row has none.
        weights: [T, k], float32: their weights.

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Switch Transformers (arXiv 2101.03961); Qwen3-MoE.
    """
    if _rt.compiling():
        return _rt.traced.topk_softmax(logits, k, renormalize, out, provider, stream)
    if out is None:
        try:
            ids = _rt.new(logits, (logits.shape[0], k), 'int32', None)
            weights = _rt.new(logits, (logits.shape[0], k), 'float32', None)
        except _rt.UNSIZED as error:
            ids = weights = _rt.Unsized(error)
    else:
        ids, weights = _rt.unpack("topk_softmax", out, ("ids", "weights"))
    tensors = (logits, ids, weights)
    _rt.run("topk_softmax", tensors, (), (k, renormalize), provider, stream)
    return ids, weights


def block_coreset(
    logits, cu_seqlens, live, k, budget, mode="vote", top_p=None, renormalize=False, *, out=None, workspace=None,
    provider=None, stream=None
):
    """Block expert coreset. Keep the experts that a block of tokens wants most, then route every token of the block
    among them.

        score = votes or maxima of the live tokens' softmax; coreset = the budget best; ids = top-k of logits within the coreset

    Args:
        logits: [T, E], X: router logits.
        cu_seqlens: [N+1], int32: where each block starts and ends.
        live: [T], bool, or None: tokens that vote; all when absent.
        k: int: experts per token.
        budget: int: experts per block at most.
        mode: 'vote', 'max': how a block scores an expert.
        top_p: float: keep only the shortest prefix that reaches this share of the score.
        renormalize: bool: divide by the sum over the chosen experts.
        out: where to write instead of new tensors, in order.
        workspace: scratch of `block_coreset_workspace_size(...)` bytes; made when None, unless `out` is given.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        coreset: [N, E], bool: experts that each block keeps (0 in rows of no sequence).
        ids: [T, k], int32: chosen experts, best first; -1 where a row has none (-1 in rows of no sequence).
        weights: [T, k], float32: their weights (0 in rows of no sequence).

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.
        MissingWorkspace: the workspace given is too small or misaligned, or `out` came without one.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Dynamic Expert Sharing (arXiv 2602.00879) for the vote; LLaDA2.2 block routing for max; dMoE (arXiv 2605.30876) for top_p.
    """
    if _rt.compiling():
        return _rt.traced.block_coreset(
            logits, cu_seqlens, live, k, budget, mode, top_p, renormalize, out, provider, stream
        )
    if out is None:
        try:
            coreset = _rt.new(logits, (cu_seqlens.shape[0] - 1, logits.shape[1]), 'bool', 0)
            ids = _rt.new(cu_seqlens, (logits.shape[0], k), 'int32', -1)
            weights = _rt.new(logits, (logits.shape[0], k), 'float32', 0)
        except _rt.UNSIZED as error:
            coreset = ids = weights = _rt.Unsized(error)
    else:
        coreset, ids, weights = _rt.unpack("block_coreset", out, ("coreset", "ids", "weights"))
    tensors = (logits, cu_seqlens, live, coreset, ids, weights)
    _rt.run_with_workspace(
        "block_coreset", tensors, (1,), (k, budget, mode, top_p, renormalize), provider, stream, workspace, out is None
    )
    return coreset, ids, weights


def block_coreset_workspace_size(
    logits, cu_seqlens, live, k, budget, mode="vote", top_p=None, renormalize=False, *, provider=None
):
    """Bytes of workspace that `block_coreset` with these arguments may need. Reads no data."""
    inputs = (logits, cu_seqlens, live)
    return _rt.workspace_size("block_coreset", inputs, (1,), (k, budget, mode, top_p, renormalize), provider)


def live_row_routes(ids, weights, live, *, out=None, provider=None, stream=None):
    """Routes of live rows. Drop the routes of rows that are not live and list the rows that are.

        ids' = live ? ids : -1; weights' = live ? weights : 0; rows = the live rows in order, then -1

    Args:
        ids: [T, k], int32: routes of all rows.
        weights: [T, k], float32: weights of all rows.
        live: [T], bool: rows to keep.
        out: where to write instead of new tensors, in order.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        live_ids: [T, k], int32: routes; -1 in rows that are not live.
        live_weights: [T, k], float32: weights; 0 in rows that are not live.
        rows: [T], int32: the live rows in order, then -1.
        count: [1], int32: how many rows are live.

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.
    Source: Clover.
    """
    if _rt.compiling():
        return _rt.traced.live_row_routes(ids, weights, live, out, provider, stream)
    if out is None:
        try:
            live_ids = _rt.new(ids, (ids.shape[0], ids.shape[1]), 'int32', None)
            live_weights = _rt.new(weights, (ids.shape[0], ids.shape[1]), 'float32', None)
            rows = _rt.new(ids, (ids.shape[0],), 'int32', None)
            count = _rt.new(ids, (1,), 'int32', None)
        except _rt.UNSIZED as error:
            live_ids = live_weights = rows = count = _rt.Unsized(error)
    else:
        live_ids, live_weights, rows, count = _rt.unpack("live_row_routes", out, ("live_ids", "live_weights", "rows", "count"))
    tensors = (ids, weights, live, live_ids, live_weights, rows, count)
    _rt.run("live_row_routes", tensors, (0,), (), provider, stream)
    return live_ids, live_weights, rows, count


def merge_live_rows(fresh, cache, live, *, out=None, provider=None, stream=None):
    """Merge of live rows. Take live rows fresh and refresh the cache with them; take the others from the cache, bit
    for bit.

        out = live ? fresh : cache; cache = out

    Args:
        fresh: [T, D], X: new rows; anything, NaN included, where not live.
        cache: [T, D], X, in/out: rows of the last step.
        live: [T], bool: rows to take from fresh.
        out: where to write instead of new tensors.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        out: [T, D], X: merged rows.

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Clover.
    """
    if _rt.compiling():
        return _rt.traced.merge_live_rows(fresh, cache, live, out, provider, stream)
    if out is None:
        try:
            out = _rt.new(fresh, (fresh.shape[0], fresh.shape[1]), None, None)
        except _rt.UNSIZED as error:
            out = _rt.Unsized(error)
    tensors = (fresh, cache, live, out)
    _rt.run("merge_live_rows", tensors, (), (), provider, stream)
    return out


def fused_moe(
    x, w13, w2, ids, weights, shared_w13=None, shared_w2=None, shared_gate=None, routed_scale=1.0,
    weight_layout="dense", *, out=None, workspace=None, provider=None, stream=None
):
    """Mixture of experts. Run each token through its experts and the shared expert, and add their outputs by weight.

        y_t = routed_scale * sum_j weights[t, j] * w2[e] (silu(w1 x_t) * (w3 x_t)), e = ids[t, j]; plus the shared expert

    Args:
        x: [T, D], X: hidden states.
        w13: [E, 2*I, D], X: gate rows, then up rows, of each expert.
        w2: [E, D, I], X: down projection of each expert.
        ids: [T, k], int32: routes; -1 is skipped.
        weights: [T, k], float32: weight of each route.
        shared_w13: [2*Is, D], X, or None: gate and up rows of the shared expert.
        shared_w2: [D, Is], X, or None: down projection of the shared expert.
        shared_gate: [D], X, or None: the shared expert is times sigmoid(x . shared_gate).
        routed_scale: float: multiplies the routed sum.
        weight_layout: 'dense': layout of w13 and w2; others are reserved.
        out: where to write instead of new tensors.
        workspace: scratch of `fused_moe_workspace_size(...)` bytes; made when None, unless `out` is given.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        y: [T, D], X: outputs.

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.
        MissingWorkspace: the workspace given is too small or misaligned, or `out` came without one.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: Qwen3-MoE; DeepSeekMoE (arXiv 2401.06066) for the shared expert.
    """
    if _rt.compiling():
        return _rt.traced.fused_moe(
            x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale, weight_layout, out, provider,
            stream
        )
    if out is None:
        try:
            y = _rt.new(x, (x.shape[0], x.shape[1]), None, None)
        except _rt.UNSIZED as error:
            y = _rt.Unsized(error)
    else:
        y = out
    tensors = (x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, y)
    _rt.run_with_workspace(
        "fused_moe", tensors, (3,), (routed_scale, weight_layout), provider, stream, workspace, out is None
    )
    return y


def fused_moe_workspace_size(
    x, w13, w2, ids, weights, shared_w13=None, shared_w2=None, shared_gate=None, routed_scale=1.0,
    weight_layout="dense", *, provider=None
):
    """Bytes of workspace that `fused_moe` with these arguments may need. Reads no data."""
    inputs = (x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate)
    return _rt.workspace_size("fused_moe", inputs, (3,), (routed_scale, weight_layout), provider)


def rotary_embedding(positions, q, k, cos_sin, interleaved=False, *, provider=None, stream=None):
    """Rotary embedding. Rotate the first RD dimensions of q and k by each token's position, in place.

        (x1, x2) <- (x1 cos - x2 sin, x2 cos + x1 sin) over pairs (i, i + RD/2), or (2i, 2i + 1) when interleaved

    Args:
        positions: [T], int32: row of cos_sin for each token.
        q: [T, A, AD], X, in/out: queries.
        k: [T, AKV, AD], X, in/out: keys.
        cos_sin: [P, RD], X: RD/2 cosines, then RD/2 sines, per position.
        interleaved: bool: pair neighbours instead of halves.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: RoFormer (arXiv 2104.09864).
    """
    if _rt.compiling():
        return _rt.traced.rotary_embedding(positions, q, k, cos_sin, interleaved, provider, stream)
    tensors = (positions, q, k, cos_sin)
    _rt.run("rotary_embedding", tensors, (0,), (interleaved,), provider, stream)


def rearrange(src, dst, *, provider=None, stream=None):
    """Strided copy. Copy any strided tensor into any other of the same shape and dtype.

        dst[...] = src[...]

    Args:
        src: [...], element: what to copy.
        dst: [...], element, written: where to copy it.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.
    Source: InfiniCore rearrange.
    """
    if _rt.compiling():
        return _rt.traced.rearrange(src, dst, provider, stream)
    tensors = (src, dst)
    _rt.run("rearrange", tensors, (), (), provider, stream)


def cast(src, dst, *, provider=None, stream=None):
    """Strided cast. Convert between BF16, FP16 and FP32, strided on either side, rounding to nearest even.

        dst[...] = round(src[...]); overflow gives Inf, NaN stays NaN

    Args:
        src: [...], X: what to convert.
        dst: [...], Y, written: where to store it.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.

    X and Y: bfloat16, float16 or float32, each the same throughout a call.
    Source: IEEE 754 conversions.
    """
    if _rt.compiling():
        return _rt.traced.cast(src, dst, provider, stream)
    tensors = (src, dst)
    _rt.run("cast", tensors, (), (), provider, stream)


def rms_norm_gated(x, weight, z, eps=1e-06, *, out=None, provider=None, stream=None):
    """Gated RMS norm. Normalise each head's vector by its root mean square and gate it with silu(z).

        y = x * rsqrt(mean(x^2) + eps) * weight * silu(z)

    Args:
        x: [T, HV, V], X: inputs.
        weight: [V], X: scale of each dimension.
        z: [T, HV, V], X: gate.
        eps: float: added to the mean square.
        out: where to write instead of new tensors.
        provider: slot of the provider that must run the call; None chooses.
        stream: raw stream handle; None takes the tensors' current stream.

    Returns:
        y: [T, HV, V], X: outputs.

    Raises:
        InvalidArgument: the call is wrong; nothing has been written.
        Unsupported: no provider on the tensors' device takes it.

    X: bfloat16, float16 or float32, each the same throughout a call.
    Source: RMSNorm (arXiv 1910.07467); Mamba-2 (arXiv 2405.21060) for the gate.
    """
    if _rt.compiling():
        return _rt.traced.rms_norm_gated(x, weight, z, eps, out, provider, stream)
    if out is None:
        try:
            y = _rt.new(x, (x.shape[0], x.shape[1], x.shape[2]), None, None)
        except _rt.UNSIZED as error:
            y = _rt.Unsized(error)
    else:
        y = out
    tensors = (x, weight, z, y)
    _rt.run("rms_norm_gated", tensors, (), (eps,), provider, stream)
    return y
