"""Inputs of the gated delta rule that its commit and its preview share."""

import numpy as np

from .arena import DENSE, LAYOUTS, Operand, gapped, packed, rows, swapped
from .checks import DATA_BOUNDS, delta_rule_bound
from .inputs import normal, unit_rows

# H, HV, K, V
SMALL = (2, 4, 64, 64)
WIDE_V = (1, 2, 64, 128)
WIDE_K = (1, 1, 128, 64)
FULL_DIMS = (1, 4, 128, 128)
V96 = (1, 2, 128, 96)
TP1 = (16, 32, 128, 128)
TP2 = (8, 16, 128, 128)

STATE_LAYOUTS = {"k_last": DENSE, "v_last": swapped(4), "k_last_gaps": rows(4), "v_last_gaps": swapped(4, gap=24)}


def make_tensors(rng, heads, tokens, dtype, l2norm, decay):
    """q, k, v, g, beta. Without l2norm keys have about unit length; the decay is `usual`, `strong` or `none`. Queries
    lean towards the key of their own token, so that no output is a sum that cancels."""
    H, HV, K, V = heads
    k = unit_rows(rng, (tokens, H, K), np.float32)
    q = normal(rng, (tokens, H, K), np.float32) + np.float32(K**0.5) * k
    q, k = q.astype(dtype), (k * np.float32(K**0.5 if l2norm else 1)).astype(dtype)
    v = normal(rng, (tokens, HV, V), dtype)
    g = -rng.exponential({"usual": 0.3, "strong": 8.0, "none": 0.0}[decay], (tokens, HV)).astype(np.float32)
    beta = 1 / (1 + np.exp(-rng.standard_normal((tokens, HV), np.float32)))
    return {"q": q, "k": k, "v": v, "g": g, "beta": beta}


def make_state(rng, heads, slots):
    _, HV, K, V = heads
    return slots.poison_unread(normal(rng, (slots.pool, HV, V, K), np.float32, 0.5))


def operands(tensors, layout):
    """`packed`: q | k | v are slices of one projection and g, beta rows of a wider buffer."""
    if layout == "packed":
        places = packed("qkv", {name: tensors[name].shape for name in ("q", "k", "v")}, gap=8)
        return {name: Operand(array, places.get(name, rows(2))) for name, array in tensors.items()}
    place = LAYOUTS[layout]
    return {name: Operand(array, place(array.ndim)) for name, array in tensors.items()}


def output_layout(layout):
    return {"packed": rows(3), "gapped": gapped(3)}.get(layout, DENSE)


def bound_of(dtype):
    """Bound of an output by the length of its sequence."""
    if dtype == np.float32:
        return delta_rule_bound
    return lambda tokens: DATA_BOUNDS[np.dtype(dtype).name]
