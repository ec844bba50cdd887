"""Rotary embedding, strided copies and casts."""

import numpy as np

from .elementary import f64


def rotary_embedding(positions, q, k, cos_sin, interleaved=False):
    """Returns the rotated q and k in float64; dimensions beyond the rotary ones keep their values exactly."""
    table = f64(cos_sin)[np.asarray(positions)]
    cos, sin = np.split(table[:, None, :], 2, axis=-1)
    return _rotate(q, cos, sin, interleaved), _rotate(k, cos, sin, interleaved)


def _rotate(x, cos, sin, interleaved):
    x = f64(x)
    half = cos.shape[-1]
    first, second = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(0, half), slice(half, 2 * half))
    )
    x1, x2 = x[..., first].copy(), x[..., second].copy()
    x[..., first] = x1 * cos - x2 * sin
    x[..., second] = x2 * cos + x1 * sin
    return x


def rearrange(src):
    """The bits of src, in whatever memory order."""
    return np.array(src, order="C")


def cast(src, dtype):
    """Round to nearest even. Every supported value is exact in float32, so that there is one rounding only."""
    with np.errstate(over="ignore"):
        return np.asarray(src).astype(np.float32).astype(dtype)
