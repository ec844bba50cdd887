"""The packed dense mixture of experts."""

import numpy as np

from .elementary import f64, sigmoid, silu


def fused_moe(x, w13, w2, ids, weights, shared_w13=None, shared_w2=None, shared_gate=None, routed_scale=1.0):
    x = f64(x)
    y = np.zeros(x.shape)
    for expert in np.unique(ids[ids >= 0]):
        tokens, routes = np.nonzero(ids == expert)
        contribution = routed_scale * f64(weights[tokens, routes])[:, None] * _mlp(x[tokens], w13[expert], w2[expert])
        np.add.at(y, tokens, contribution)
    if shared_w13 is not None:
        shared = _mlp(x, shared_w13, shared_w2)
        if shared_gate is not None:
            shared = shared * sigmoid(x @ f64(shared_gate))[:, None]
        y += shared
    return y


def _mlp(x, w13, w2):
    gate, up = np.split(f64(w13), 2)
    return (silu(x @ gate.T) * (x @ up.T)) @ f64(w2).T
