"""Launches the Triton kernels on torch tensors with the grids, widths and arguments that a provider computes."""

from dataclasses import dataclass

import torch
from clover_ops.jit.kernels import Config

READS = ("bidirectional", "block", "causal")
SHORT = 64  # tokens up to which a sequence is replayed exactly


@dataclass(frozen=True)
class Operands:
    """What the preview and the commit have in common."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    g: torch.Tensor
    beta: torch.Tensor
    o: torch.Tensor
    state: torch.Tensor
    cu_seqlens: torch.Tensor
    initial: torch.Tensor
    scale: float | None
    l2norm: bool

    @property
    def heads(self) -> int:
        return self.v.shape[1]

    @property
    def sequences(self) -> int:
        return self.cu_seqlens.numel() - 1

    @property
    def group(self) -> int:
        return self.v.shape[1] // self.q.shape[1]

    @property
    def factor(self) -> float:
        return self.q.shape[2] ** -0.5 if self.scale is None else self.scale

    def strides(self, *names: str) -> list[int]:
        """Of tokens and heads; a state's of all its axes."""
        tensors = {name: getattr(self, name) for name in names}
        return [n for name, tensor in tensors.items() for n in tensor.stride()[: 4 if name == "state" else 2]]


def precision_of(backend: str, dtype: torch.dtype) -> int:
    """As common/kernels/triton/delta_rule.py numbers them: IEEE products on HIP, TF32 and BF16 terms on CUDA."""
    if backend == "hip":
        return 0
    return 2 if dtype == torch.bfloat16 else 1


def power_of_two(value: int, least: int = 16) -> int:
    while least < value:
        least *= 2
    return least


def _launch(kernel, grid, arguments, config: Config, **constexprs):
    if 0 in grid:
        return
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages, **dict(config.options)}
    kernel[grid](*arguments, **{**constexprs, **dict(config.constexprs)}, **options)


def preview_delta(module, config: Config, backend: str, x: Operands, read: str, width: int):
    K, V = x.q.shape[2], x.v.shape[2]
    tile = dict(config.constexprs)["BV"]
    arguments = (
        x.q, x.k, x.v, x.g, x.beta, x.o, x.state, x.cu_seqlens, x.initial,
        *x.strides("q", "k", "v", "g", "beta", "o", "state"), x.v.shape[0], x.state.shape[0], x.group, x.factor,
    )  # fmt: skip
    _launch(
        module.preview_delta, (-(-V // tile), x.heads, x.sequences), arguments, config, K=K, V=V, BK=power_of_two(K),
        W=power_of_two(width), READ=READS.index(read), L2NORM=x.l2norm, PRECISION=precision_of(backend, x.q.dtype),
    )  # fmt: skip


def chunk_workspace(x: Operands, chunk: int) -> list[torch.Tensor]:
    """solve, attend and factors, poisoned."""
    cells = (x.v.shape[0] // chunk + x.sequences) * x.heads
    sizes = (chunk * chunk, chunk * chunk, 4 * chunk)
    return [torch.full((cells * size,), float("nan"), device=x.v.device) for size in sizes]


def gated_delta_chunk(module, prepare: Config, advance: Config, backend: str, x: Operands, final: torch.Tensor):
    """`prepare` and `advance` are configurations of the same C."""
    K, V, tokens = x.q.shape[2], x.v.shape[2], x.v.shape[0]
    C, tile = dict(prepare.constexprs)["C"], dict(advance.constexprs)["BV"]
    workspace = chunk_workspace(x, C)
    fixed = {
        "K": K, "BK": power_of_two(K), "SHORT": SHORT, "L2NORM": x.l2norm,
        "PRECISION": precision_of(backend, x.q.dtype),
    }  # fmt: skip
    arguments = (
        x.q, x.k, x.g, x.beta, x.cu_seqlens, *workspace, *x.strides("q", "k", "g", "beta"), tokens, x.sequences, x.group,
        x.factor,
    )  # fmt: skip
    grid = (tokens // C + x.sequences, x.heads)
    _launch(module.gated_delta_chunk_prepare, grid, arguments, prepare, **fixed)
    arguments = (
        x.q, x.k, x.v, x.g, x.beta, x.o, x.state, x.cu_seqlens, x.initial, final, *workspace,
        *x.strides("q", "k", "v", "g", "beta", "o", "state"), tokens, x.state.shape[0], x.group, x.factor,
    )  # fmt: skip
    grid = (-(-V // tile), x.heads, x.sequences)
    _launch(module.gated_delta_chunk_advance, grid, arguments, advance, V=V, **fixed)


@dataclass(frozen=True)
class Experts:
    """What fused_moe is given; the shared expert's tensors may be None."""

    x: torch.Tensor
    w13: torch.Tensor
    w2: torch.Tensor
    ids: torch.Tensor
    weights: torch.Tensor
    shared_w13: torch.Tensor | None
    shared_w2: torch.Tensor | None
    shared_gate: torch.Tensor | None
    scale: float
    y: torch.Tensor


def moe_precision(backend: str, dtype: torch.dtype) -> int:
    if backend == "hip":
        return 0
    return 2 if dtype == torch.float32 else 1


def fused_moe(module, up: Config, down: Config, others: dict[str, Config], backend: str, m: Experts):
    """`others` are the configurations of moe_sort and moe_sum."""
    (T, D), (E, double, _), k = m.x.shape, m.w13.shape, m.ids.shape[1]
    inner, routes, device = double // 2, T * k, m.x.device
    order = torch.full((max(routes, 1),), -7, dtype=torch.int32, device=device) if T != 1 else m.ids
    starts = torch.full((E + 1,), -7, dtype=torch.int32, device=device)
    partial = torch.full((max(routes, 1), D), float("nan"), device=device)
    fixed = {"D": D, "EXPERTS": 1, "PRECISION": moe_precision(backend, m.x.dtype)}
    routed = {**fixed, "I": inner, "ROUTED": 2}
    if T != 1:
        arguments = (m.ids, order, starts, m.ids.stride(0), routes, E)
        _launch(module.moe_sort, (E + 1,), arguments, others["moe_sort"], TOPK=k)
        routed |= {"EXPERTS": power_of_two(E, 1), "ROUTED": 1}
    _mlp(module, up, down, m.x, m.w13, m.w2, order, starts, partial, routes, E, routed, k)
    shared = None
    if m.shared_w13 is not None:
        shared = torch.full((max(T, 1), D), float("nan"), device=device)
        alone = {**fixed, "I": m.shared_w2.shape[1], "ROUTED": 0}
        weights = m.shared_w13[None], m.shared_w2[None]
        _mlp(module, up, down, m.x, *weights, order, starts, shared, T, 1, alone, 1)
    config = others["moe_sum"]
    arguments = (
        partial, m.ids, m.weights, partial if shared is None else shared, m.x, m.x if m.shared_gate is None else m.shared_gate,
        m.y, D, m.ids.stride(0), m.weights.stride(0), m.x.stride(0), m.y.stride(0), E, m.scale,
    )  # fmt: skip
    _launch(
        module.moe_sum, (T, -(-D // dict(config.constexprs)["BD"])), arguments, config, D=D, TOPK=k,
        SHARED=int(shared is not None), GATED=int(m.shared_gate is not None),
    )  # fmt: skip


def _mlp(module, up, down, x, w13, w2, order, starts, out, rows, experts, fixed, k):
    """moe_up and moe_down over `rows` routes, or tokens."""
    D, inner = fixed["D"], fixed["I"]
    hidden = torch.full((max(rows, 1), inner), float("nan"), dtype=x.dtype, device=x.device)

    def grid(config, columns):
        values = dict(config.constexprs)
        tiles = rows if fixed["ROUTED"] == 2 else rows // values["BM"] + min(experts, rows)
        return -(-columns // values["BN"]), tiles

    arguments = (x, w13, order, starts, hidden, x.stride(0), *w13.stride()[:2], inner, x.shape[0], experts)
    _launch(module.moe_up, grid(up, inner), arguments, up, TOPK=k if fixed["ROUTED"] == 1 else 1, **fixed)
    arguments = (hidden, w2, order, starts, out, inner, *w2.stride()[:2], D, x.shape[0], experts)
    _launch(module.moe_down, grid(down, D), arguments, down, **fixed)
