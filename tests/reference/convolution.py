"""The short causal convolution: a commit that advances the pool and a preview that only reads it."""

import numpy as np

from .elementary import f64, silu, spans

ACTIVATIONS = {"none": lambda x: x, "silu": silu}


def causal_conv1d(
    x, weight, bias, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation="none"
):
    """Returns y in float64 and the new pool in its own dtype (its entries are copies of inputs)."""
    y = np.zeros(x.shape)
    pool = conv_state.copy()
    for n, (begin, end) in enumerate(spans(cu_seqlens)):
        past = _past(conv_state, initial_state_indices[n])
        z = np.concatenate([past, x[begin:end].astype(conv_state.dtype)])
        y[begin:end] = _convolve(z, weight, bias, activation)
        if final_state_indices[n] >= 0:
            pool[final_state_indices[n]] = z[end - begin :].T
    return y, pool


def preview_conv1d(x, weight, bias, conv_state, cu_seqlens, initial_state_indices, activation="none"):
    nowhere = [-1] * len(initial_state_indices)
    y, _ = causal_conv1d(x, weight, bias, conv_state, cu_seqlens, initial_state_indices, nowhere, activation)
    return y


def _past(conv_state, slot):
    """The KC-1 inputs before the sequence, oldest first: [KC-1, C]."""
    if slot < 0:
        return np.zeros(conv_state.shape[:0:-1], conv_state.dtype)
    return conv_state[slot].T


def _convolve(z, weight, bias, activation):
    taps = weight.shape[1]
    tokens = z.shape[0] - (taps - 1)
    z, weight = f64(z), f64(weight)
    total = sum(weight[:, j] * z[j : j + tokens] for j in range(taps))
    if bias is not None:
        total = total + f64(bias)
    return ACTIVATIONS[activation](total)
