"""What a user would pick instead. A peer that is not there is recorded as "not installed"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from clover_ops.bench.works import HV, TOP_K, D, E, H, I, K, V

from . import sglang_kernels as sglang

Peers = dict[str, list[Callable[[], object]] | str]
ABSENT = "not installed"


def _fla(name: str) -> Callable | None:
    try:
        from fla.ops import gated_delta_rule
    except ImportError:
        return None
    return getattr(gated_delta_rule, name)


def _batched(inputs, sequences: int, width: int) -> tuple[tuple[torch.Tensor, ...], dict[str, Any]]:
    q, k, v, g, beta = inputs[:5]
    s = (sequences, width)
    tensors = (q.view(*s, H, K), k.view(*s, H, K), v.view(*s, HV, V), g.view(*s, HV), beta.view(*s, HV))
    return tensors, {"use_qk_l2norm_in_kernel": True, "initial_state": inputs[5]}


def _recurrent(function, sets, sequences: int, width: int, final: bool):
    if function is None:
        return ABSENT

    def call(inputs):
        (q, k, v, g, beta), options = _batched(inputs, sequences, width)
        return lambda: function(q, k, v, g=g, beta=beta, output_final_state=final, **options)

    return [call(inputs) for inputs in sets]


def _sglang_chunk(sets, sequences: int, width: int):
    function = sglang.function("attention.fla.chunk", "chunk_gated_delta_rule")
    if function is None:
        return ABSENT

    def call(inputs):
        (q, k, v, g, beta), options = _batched(inputs, sequences, width)
        return lambda: function(q, k, v, g, beta, initial_state_indices=inputs[7], inplace_update=True, **options)

    return [call(inputs) for inputs in sets]


def _sglang_recurrent() -> Callable | None:
    return sglang.function("attention.fla.fused_recurrent", "fused_recurrent_gated_delta_rule")


def delta_read_only(sets, sequences: int, width: int) -> Peers:
    size = (sequences, width, False)
    return {
        "FLA recurrent (causal)": _recurrent(_fla("fused_recurrent_gated_delta_rule"), sets, *size),
        "FLA chunk (causal)": _recurrent(_fla("chunk_gated_delta_rule"), sets, *size),
        "SGLang recurrent (causal)": _recurrent(_sglang_recurrent(), sets, *size),
    }


def delta_commit(sets, sequences: int, width: int) -> Peers:
    return {
        "FLA recurrent": _recurrent(_fla("fused_recurrent_gated_delta_rule"), sets, sequences, width, True),
        "SGLang recurrent": _recurrent(_sglang_recurrent(), sets, sequences, width, True),
    }


def delta_prompt(sets) -> Peers:
    tokens = sets[0][0].shape[0]
    return {
        "FLA chunk": _recurrent(_fla("chunk_gated_delta_rule"), sets, 1, tokens, True),
        "SGLang chunk": _sglang_chunk(sets, 1, tokens),
    }


def prompt_answers(q, k, v, g, beta, start) -> dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]]:
    """Outputs and final state [HV, V, K] of the peers' chunked forms; those that are not installed are left out."""
    inputs = tuple(a[None] for a in (q, k, v))
    gates = {"g": g[None], "beta": beta[None], "use_qk_l2norm_in_kernel": True}
    fla, chunk = _fla("chunk_gated_delta_rule"), sglang.function("attention.fla.chunk", "chunk_gated_delta_rule")

    def of_fla():  # its states are [K, V]
        state = start.transpose(-1, -2).contiguous()
        o, s = fla(*inputs, initial_state=state, output_final_state=True, **gates)
        return o[0], s[0].transpose(-1, -2)

    def of_sglang():  # it renews the pool
        pool = start.clone()
        slot = torch.zeros(1, dtype=torch.int32, device=pool.device)
        o = chunk(*inputs, initial_state=pool, initial_state_indices=slot, **gates)[0]
        return o[0], pool[0]

    return {n: f for n, f, there in (("FLA chunk", of_fla, fla), ("SGLang chunk", of_sglang, chunk)) if there}


def moe(sets) -> Peers:
    return {
        "torch _grouped_mm": [_grouped_mm(*s) for s in sets],
        "SGLang Triton, sort not counted": sglang.moe(sets) or ABSENT,
    }


def _grouped_mm(x, w13, w2, ids, weights):
    """The path that PyTorch offers: sort, grouped products, activation, weighted scatter; without a host round trip."""
    experts = torch.arange(E, device=x.device)

    def run():
        flat = ids.flatten().long()
        order = flat.argsort(stable=True)
        offsets = (flat[:, None] == experts).sum(0).cumsum(0).to(torch.int32)
        rows = x[order // TOP_K]
        up = torch._grouped_mm(rows, w13.transpose(1, 2), offs=offsets)
        inner = torch.nn.functional.silu(up[:, :I]) * up[:, I:]
        down = torch._grouped_mm(inner, w2.transpose(1, 2), offs=offsets)
        out = torch.zeros(x.shape[0], D, dtype=torch.float32, device=x.device)
        out.index_add_(0, order // TOP_K, down.float() * weights.flatten()[order, None])
        return out.to(x.dtype)

    return run


def convolution(sets) -> Peers:
    function = sglang.function("mamba.causal_conv1d_triton", "causal_conv1d_fn")
    if function is None:
        return {"SGLang Triton": ABSENT}

    def call(x, weight, bias, pool, cu_seqlens, slot):
        has_state = torch.ones(1, dtype=torch.bool, device=x.device)
        lengths = [x.shape[0]]
        return lambda: function(x.t(), weight, bias, pool, cu_seqlens, lengths, slot, has_state, "silu")

    return {"SGLang Triton": [call(*s) for s in sets]}
