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
