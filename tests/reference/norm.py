"""The gated RMS norm."""

import numpy as np

from .elementary import f64, silu


def rms_norm_gated(x, weight, z, eps=1e-6):
    x = f64(x)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * f64(weight) * silu(f64(z))
