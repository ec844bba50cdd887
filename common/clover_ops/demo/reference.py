"""The operators' equations in float64, token by token, written from the operator guide for the demo alone.

Every function takes an operator's arguments in its order and returns its outputs, then the new contents of its in/out
tensors. Nothing here is fast, and nothing here is shared with a provider.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def _f64(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else np.asarray(array).astype(np.float64)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -x))


def _silu(x: np.ndarray) -> np.ndarray:
    return x * _sigmoid(x)


def _sequences(cu_seqlens: np.ndarray) -> Iterator[tuple[int, int, int]]:
    for n in range(len(cu_seqlens) - 1):
        yield n, int(cu_seqlens[n]), int(cu_seqlens[n + 1])


def _initial(pool: np.ndarray, slot: int) -> np.ndarray:
    return np.zeros(pool.shape[1:]) if slot < 0 else pool[slot].copy()


# Convolution


def causal_conv1d(x, weight, bias, conv_state, cu_seqlens, initial, final, activation="none"):
    """y and the pool after the call."""
    x, weight, bias, conv_state = _f64(x), _f64(weight), _f64(bias), _f64(conv_state)
    width = weight.shape[1]
    y, pool = np.zeros(x.shape), conv_state.copy()
    for n, start, end in _sequences(cu_seqlens):
        z = np.concatenate([_initial(conv_state, initial[n]), x[start:end].T], axis=1)
        for t in range(end - start):
            row = (weight * z[:, t : t + width]).sum(axis=1)
            row = row if bias is None else row + bias
            y[start + t] = _silu(row) if activation == "silu" else row
        if final[n] >= 0:
            pool[final[n]] = z[:, end - start :]
    return y, pool


def preview_conv1d(x, weight, bias, conv_state, cu_seqlens, initial, activation="none"):
    """y alone: the pool is read, not written."""
    nowhere = np.full(len(initial), -1)
    return causal_conv1d(x, weight, bias, conv_state, cu_seqlens, initial, nowhere, activation)[:1]


# Gating and the gated delta rule


def gated_delta_net_gating(a, b, a_log, dt_bias):
    """g and beta."""
    x = _f64(a) + _f64(dt_bias)
    softplus = np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))
    return -np.exp(_f64(a_log)) * softplus, _sigmoid(_f64(b))


def _heads(q, k, v, l2norm):
    """q, k and v in float64, normalised if asked, with query-key heads repeated for their value heads."""
    q, k, v = _f64(q), _f64(k), _f64(v)
    if l2norm:
        q, k = (x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1e-6) for x in (q, k))
    group = v.shape[1] // q.shape[1]
    return np.repeat(q, group, axis=1), np.repeat(k, group, axis=1), v


def _advance(state, k, v, g, beta):
    """One token of the gated delta rule for all value heads: state [HV, V, K]."""
    state = np.exp(g)[:, None, None] * state
    update = beta[:, None] * (v - (state @ k[:, :, None])[:, :, 0])
    return state + update[:, :, None] * k[:, None, :]


def _read(state, q, scale):
    return scale * (state @ q[:, :, None])[:, :, 0]


def gated_delta_rule(q, k, v, g, beta, state, cu_seqlens, initial, final, scale=None, l2norm=False):
    """o and the pool after the call."""
    scale = q.shape[2] ** -0.5 if scale is None else scale
    q, k, v = _heads(q, k, v, l2norm)
    g, beta, state = _f64(g), _f64(beta), _f64(state)
    o, pool = np.zeros(v.shape), state.copy()
    for n, start, end in _sequences(cu_seqlens):
        s = _initial(state, initial[n])
        for t in range(start, end):
            s = _advance(s, k[t], v[t], g[t], beta[t])
            o[t] = _read(s, q[t], scale)
        if final[n] >= 0:
            pool[final[n]] = s
    return o, pool


def preview_gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial, scale=None, l2norm=False, read="bidirectional"
):
    """o alone: the pool is read, not written."""
    scale = q.shape[2] ** -0.5 if scale is None else scale
    q, k, v = _heads(q, k, v, l2norm)
    g, beta, state = _f64(g), _f64(beta), _f64(state)
    o = np.zeros(v.shape)
    for n, start, end in _sequences(cu_seqlens):
        forward = _initial(state, initial[n])
        for t in range(start, end):
            forward = _advance(forward, k[t], v[t], g[t], beta[t])
            o[t] = _read(forward, q[t], scale)
        if read == "block":
            for t in range(start, end):
                o[t] = _read(forward, q[t], scale)
        if read == "bidirectional":
            backward = np.zeros(state.shape[1:])
            for t in reversed(range(start, end)):
                o[t] += _read(backward, q[t], scale)
                backward = _advance(backward, k[t], v[t], g[t], beta[t])
    return (o,)


def preview_gdn(
    qkv, a, b, z, conv_weight, conv_bias, conv_state, a_log, dt_bias, state, cu_seqlens, initial, norm_weight,
    eps=1e-6, scale=None, read="bidirectional",
):  # fmt: skip
    """o of a whole layer core."""
    heads, value_dim, key_dim = state.shape[1:]
    tokens = qkv.shape[0]
    (mixed,) = preview_conv1d(qkv, conv_weight, conv_bias, conv_state, cu_seqlens, initial, "silu")
    keys = (mixed.shape[1] - heads * value_dim) // 2
    q = mixed[:, :keys].reshape(tokens, keys // key_dim, key_dim)
    k = mixed[:, keys : 2 * keys].reshape(tokens, keys // key_dim, key_dim)
    v = mixed[:, 2 * keys :].reshape(tokens, heads, value_dim)
    g, beta = gated_delta_net_gating(a, b, a_log, dt_bias)
    (o,) = preview_gated_delta_rule(q, k, v, g, beta, state, cu_seqlens, initial, scale, True, read)
    return (o,) if z is None else rms_norm_gated(o, norm_weight, z, eps)


# Routing and live rows


def softmax(logits):
    """Softmax over the last axis; a NaN logit counts as minus infinity."""
    logits = np.where(np.isnan(logits), -np.inf, _f64(logits))
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def route(logits, allowed, k, renormalize):
    """ids and weights of each token's k best among its allowed experts, best first, ties to the lower index."""
    ids, weights = np.full((len(logits), k), -1), np.zeros((len(logits), k))
    for t, row in enumerate(_f64(logits)):
        ranked = sorted(np.flatnonzero(allowed[t]), key=lambda e: (-row[e], e))[:k]
        ids[t] = ranked
        weights[t] = softmax(row)[ranked]
        if renormalize:
            total = weights[t].sum()
            weights[t] = weights[t] / total if total else 0
    return ids, weights


def topk_softmax(logits, k, renormalize=False):
    """ids and weights."""
    return route(logits, np.ones(logits.shape, bool), k, renormalize)


def coreset_scores(logits, cu_seqlens, live, k, mode):
    """What each block's live tokens think of each expert: [N, E]."""
    scores = np.zeros((len(cu_seqlens) - 1, logits.shape[1]))
    ids, weights = topk_softmax(logits, k)
    for n, start, end in _sequences(cu_seqlens):
        for t in range(start, end):
            if live is not None and not live[t]:
                continue
            if mode == "max":
                scores[n] = np.maximum(scores[n], softmax(logits[t]))
            else:
                scores[n, ids[t]] += weights[t]
    return scores


def block_coreset(logits, cu_seqlens, live, k, budget, mode="vote", renormalize=False):
    """coreset, ids and weights."""
    scores = coreset_scores(logits, cu_seqlens, live, k, mode)
    coreset, allowed = np.zeros(scores.shape, bool), np.zeros(logits.shape, bool)
    for n, start, end in _sequences(cu_seqlens):
        if end > start:
            kept = sorted(range(logits.shape[1]), key=lambda e, n=n: (-scores[n, e], e))[:budget]
            coreset[n, kept] = True
            allowed[start:end] = coreset[n]
    return coreset, *route(logits, allowed, k, renormalize)


def live_row_routes(ids, weights, live):
    """live_ids, live_weights, rows and count."""
    alive = [t for t in range(len(live)) if live[t]]
    rows = np.array(alive + [-1] * (len(live) - len(alive)), np.int64)
    return np.where(live[:, None], ids, -1), np.where(live[:, None], weights, 0), rows, np.array([len(alive)])


def merge_live_rows(fresh, cache, live):
    """out and the cache after the call, in their own dtype: both are copies, not arithmetic."""
    merged = cache.copy()
    merged[live] = fresh[live]
    return merged, merged


# Mixture of experts


def _expert(x, w13, w2):
    inner = w13 @ x
    half = len(inner) // 2
    return w2 @ (_silu(inner[:half]) * inner[half:])


def fused_moe(x, w13, w2, ids, weights, shared_w13, shared_w2, shared_gate, routed_scale=1.0):
    """y alone."""
    x, w13, w2, weights = _f64(x), _f64(w13), _f64(w2), _f64(weights)
    shared_w13, shared_w2, shared_gate = _f64(shared_w13), _f64(shared_w2), _f64(shared_gate)
    y = np.zeros(x.shape)
    for t in range(len(x)):
        for e, weight in zip(ids[t], weights[t], strict=True):
            if e >= 0:
                y[t] += routed_scale * weight * _expert(x[t], w13[e], w2[e])
        if shared_w13 is not None:
            gate = 1.0 if shared_gate is None else _sigmoid(x[t] @ shared_gate)
            y[t] += gate * _expert(x[t], shared_w13, shared_w2)
    return (y,)


# Layout, norm and rotary


def rotary_embedding(positions, q, k, cos_sin, interleaved=False):
    """q and k after the call."""
    table = _f64(cos_sin)[positions]
    half = table.shape[1] // 2
    cos, sin = table[:, None, :half], table[:, None, half:]
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    rotated = []
    for x in (_f64(q), _f64(k)):
        y = x.copy()
        y[..., first] = x[..., first] * cos - x[..., second] * sin
        y[..., second] = x[..., second] * cos + x[..., first] * sin
        rotated.append(y)
    return tuple(rotated)


def rearrange(src, dst):
    """dst after the call, as src's own elements."""
    return (np.array(src),)


def cast(src, dst):
    """dst after the call, in its own dtype: BF16 to FP32 and back by the bits alone."""
    if dst.dtype == np.float32:
        return ((np.ascontiguousarray(src).view(np.uint16).astype(np.uint32) << 16).view(np.float32),)
    bits = np.ascontiguousarray(src).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16  # half way goes to the even one
    quiet_nan = (bits >> 16) | 0x40
    return (np.where(np.isnan(src), quiet_nan, rounded).astype(np.uint16).view(dst.dtype),)


def rms_norm_gated(x, weight, z, eps=1e-6):
    """y alone."""
    x, weight, z = _f64(x), _f64(weight), _f64(z)
    return (x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight * _silu(z),)
