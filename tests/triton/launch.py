"""Launches the Triton kernels on torch tensors with the grids, widths and arguments that the C++ providers compute."""

from importlib import util
from pathlib import Path

import torch

BYTES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}


def load(folder: Path, name: str):
    """A kernel module, by its path."""
    spec = util.spec_from_file_location(f"clover_triton_{name}", folder / f"{name}.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def precision_of(backend: str, dtype: torch.dtype) -> int:
    """As common/kernels/triton/delta_rule.py numbers them: IEEE products on HIP, TF32 and BF16 terms on CUDA."""
    if backend == "hip":
        return 0
    return 2 if dtype == torch.bfloat16 else 1


def power_of_two(value: int, least: int = 16) -> int:
    while least < value:
        least *= 2
    return least


def _common(q, v, state):
    H, K, HV, V = q.shape[1], q.shape[2], v.shape[1], v.shape[2]
    return {"K": K, "BK": power_of_two(K)}, HV // H, HV, V


def _strides(*tensors):
    return [stride for tensor in tensors for stride in tensor.stride()[:2]]


def split_options(config):
    options = {name: value for name, value in config.items() if name in ("num_warps", "num_stages", "waves_per_eu")}
    return options, {name: value for name, value in config.items() if name not in options}


def preview_delta(module, config, q, k, v, g, beta, state, cu_seqlens, initial, o, scale, l2norm, read, width, backend):
    shape, group, heads, V = _common(q, v, state)
    options, tiles = split_options(config)
    sequences = cu_seqlens.numel() - 1
    if sequences == 0 or v.shape[0] == 0:
        return
    module.preview_delta[(-(-V // tiles["BV"]), heads, sequences)](
        q, k, v, g, beta, o, state, cu_seqlens, initial,
        *_strides(q, k, v, g, beta, o), *state.stride(), v.shape[0], state.shape[0], group, scale,
        **shape, V=V, **tiles, W=power_of_two(width),
        READ=("bidirectional", "block", "causal").index(read), L2NORM=l2norm, PRECISION=precision_of(backend, q.dtype),
        **options,
    )  # fmt: skip


SHORT = 64  # tokens up to which a sequence is replayed exactly


def chunk_workspace(tokens, sequences, heads, chunk, device):
    """solve, attend and factors."""
    cells = (tokens // chunk + sequences) * heads
    return [torch.full((cells * n,), float("nan"), device=device) for n in (chunk * chunk, chunk * chunk, 4 * chunk)]


def gated_delta_chunk(
    module, prepare, advance, q, k, v, g, beta, state, cu_seqlens, initial, final, o, scale, l2norm, backend,
    workspace=None,
):  # fmt: skip
    """`prepare` and `advance` are configurations with the same C."""
    shape, group, heads, V = _common(q, v, state)
    tokens, sequences, C = v.shape[0], cu_seqlens.numel() - 1, prepare["C"]
    if sequences == 0:
        return
    workspace = workspace or chunk_workspace(tokens, sequences, heads, C, v.device)
    fixed = {"SHORT": SHORT, "L2NORM": l2norm, "PRECISION": precision_of(backend, q.dtype)}
    options, tiles = split_options(prepare)
    module.gated_delta_chunk_prepare[(tokens // C + sequences, heads)](
        q, k, g, beta, cu_seqlens, *workspace, *_strides(q, k, g, beta), tokens, sequences, group, scale,
        **shape, **tiles, **fixed, **options,
    )  # fmt: skip
    options, tiles = split_options(advance)
    module.gated_delta_chunk_advance[(-(-V // tiles["BV"]), heads, sequences)](
        q, k, v, g, beta, o, state, cu_seqlens, initial, final, *workspace,
        *_strides(q, k, v, g, beta, o), *state.stride(), tokens, state.shape[0], group, scale,
        **shape, V=V, **tiles, **fixed, **options,
    )  # fmt: skip
