"""Errors of a long prompt's outputs and final state, against the recurrence in float64."""

from __future__ import annotations

import clover_ops
import torch

from . import peers

Answer = tuple[torch.Tensor, torch.Tensor]


def recurrence(q, k, v, g, beta, state) -> Answer:
    """One sequence, token by token, in float64: outputs and the final state [HV, V, K]."""
    group = v.shape[1] // q.shape[1]
    q, k = (_normalized(a.double()).repeat_interleave(group, 1) for a in (q, k))
    q, v, decay, beta = q * q.shape[-1] ** -0.5, v.double(), g.double().exp(), beta.double()
    s, o = state.double().clone(), torch.empty(v.shape, dtype=torch.float64, device=v.device)
    for t in range(v.shape[0]):
        s *= decay[t, :, None, None]
        u = beta[t, :, None] * (v[t] - torch.einsum("hvk,hk->hv", s, k[t]))
        s += u[:, :, None] * k[t, :, None, :]
        o[t] = torch.einsum("hvk,hk->hv", s, q[t])
    return o, s


def _normalized(a: torch.Tensor) -> torch.Tensor:
    return a * torch.rsqrt(a.square().sum(-1, keepdim=True) + 1e-6)


def prompt_errors(inputs) -> dict[str, dict[str, float | str]]:
    """Largest error over the largest value, of outputs and state, from one state that nobody has changed yet."""
    q, k, v, g, beta, state, cu_seqlens, slots = inputs
    start = 0.1 * torch.randn_like(state)
    o, s = recurrence(q, k, v, g, beta, start[0])

    def ours() -> Answer:
        pool = start.clone()
        out = clover_ops.gated_delta_rule(q, k, v, g, beta, pool, cu_seqlens, slots, slots, l2norm=True)
        return out, pool[0]

    answers = {"clover-ops": ours, **peers.prompt_answers(q, k, v, g, beta, start)}
    found: dict[str, dict[str, float | str]] = {}
    for name, answer in answers.items():
        try:
            out, last = answer()
            found[name] = {"output": _error(out, o), "state": _error(last, s)}
        except Exception as error:  # a peer that fails is recorded, not hidden
            found[name] = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"}
    return found


def _error(got: torch.Tensor, true: torch.Tensor) -> float:
    return float((got.double().reshape(true.shape) - true).abs().max() / true.abs().max())
