"""What several references need: float64 conversion, activations, the spans of packed sequences."""

import itertools

import numpy as np


def f64(array):
    return np.asarray(array).astype(np.float64)


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def silu(x):
    with np.errstate(invalid="ignore"):
        return x * sigmoid(x)


def softplus(x):
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))


def spans(cu_seqlens):
    """(begin, end) of each packed sequence."""
    ends = [int(end) for end in cu_seqlens]
    return list(itertools.pairwise(ends))
