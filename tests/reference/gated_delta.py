"""Gating and the gated delta rule: the recurrence as it stands, token by token, all heads at once."""

import numpy as np

from .convolution import preview_conv1d
from .elementary import f64, sigmoid, softplus, spans
from .norm import rms_norm_gated


def gated_delta_net_gating(a, b, A_log, dt_bias):
    g = -np.exp(f64(A_log)) * softplus(f64(a) + f64(dt_bias))
    return g, sigmoid(f64(b))


def gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale=None, l2norm=False
):
    """Returns o and the new pool, both float64; slots that no sequence writes hold their old values exactly."""
    q, k, v, g, beta, scale = _prepare(q, k, v, g, beta, scale, l2norm)
    o = np.zeros(v.shape)
    pool = f64(state)
    for n, (begin, end) in enumerate(spans(cu_seqlens)):
        S = _initial(state, initial_state_indices[n])
        for t in range(begin, end):
            _advance(S, g[t], beta[t], k[t], v[t])
            o[t] = scale * _apply(S, q[t])
        if final_state_indices[n] >= 0:
            pool[final_state_indices[n]] = S
    return o, pool


def preview_gated_delta_rule(
    q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale=None, l2norm=False, read="bidirectional"
):
    q, k, v, g, beta, scale = _prepare(q, k, v, g, beta, scale, l2norm)
    o = np.zeros(v.shape)
    for n, (begin, end) in enumerate(spans(cu_seqlens)):
        S = _initial(state, initial_state_indices[n])
        for t in range(begin, end):
            _advance(S, g[t], beta[t], k[t], v[t])
            if read != "block":
                o[t] = scale * _apply(S, q[t])
        if read == "block":
            for t in range(begin, end):
                o[t] = scale * _apply(S, q[t])
        if read == "bidirectional":
            R = np.zeros_like(S)
            for t in reversed(range(begin, end)):
                o[t] += scale * _apply(R, q[t])
                _advance(R, g[t], beta[t], k[t], v[t])
    return o


def preview_gdn(
    qkv,
    a,
    b,
    z,
    conv_weight,
    conv_bias,
    conv_state,
    A_log,
    dt_bias,
    state,
    cu_seqlens,
    initial_state_indices,
    norm_weight=None,
    eps=1e-6,
    scale=None,
    read="bidirectional",
):
    _, HV, V, K = state.shape
    H = (qkv.shape[1] - HV * V) // (2 * K)
    mixed = preview_conv1d(qkv, conv_weight, conv_bias, conv_state, cu_seqlens, initial_state_indices, "silu")
    q, k, v = np.split(mixed, [H * K, 2 * H * K], axis=1)
    q, k, v = q.reshape(-1, H, K), k.reshape(-1, H, K), v.reshape(-1, HV, V)
    g, beta = gated_delta_net_gating(a, b, A_log, dt_bias)
    o = preview_gated_delta_rule(
        q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale=scale, l2norm=True, read=read
    )
    if z is None:
        return o
    used = int(cu_seqlens[-1])
    o[:used] = rms_norm_gated(o[:used], norm_weight, z[:used], eps)
    return o


def _prepare(q, k, v, g, beta, scale, l2norm):
    """Float64 operands, with the query and key of every value head."""
    q, k, v, g, beta = (f64(operand) for operand in (q, k, v, g, beta))
    if l2norm:
        q, k = _unit(q), _unit(k)
    group = v.shape[1] // q.shape[1]
    if scale is None:
        scale = q.shape[2] ** -0.5
    return np.repeat(q, group, axis=1), np.repeat(k, group, axis=1), v, g, beta, scale


def _unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def _initial(state, slot):
    return np.zeros(state.shape[1:]) if slot < 0 else f64(state[slot])


def _apply(S, vector):
    return (S @ vector[..., None])[..., 0]


def _advance(S, g, beta, k, v):
    S *= np.exp(g)[:, None, None]
    u = beta[:, None] * (v - _apply(S, k))
    S += u[:, :, None] * k[:, None, :]
