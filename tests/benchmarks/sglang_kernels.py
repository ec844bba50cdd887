"""SGLang's Triton kernels out of an unpacked wheel, without SGLang: CLOVER_BENCH_SGLANG names the folder that holds `sglang`.

The kernels' files import little of their surroundings, and that little is stood in for here: SGLang's own packages import
servers and libraries that no kernel needs.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

_PACKAGES = (
    "sglang",
    *(f"sglang.kernels{n}" for n in ("", ".ops", ".ops.attention", ".ops.attention.fla", ".ops.mamba", ".ops.moe")),
)


@lru_cache(maxsize=1)
def _root() -> Path | None:
    """The folder, with the stand-ins in place; None where it is not named."""
    named = os.environ.get("CLOVER_BENCH_SGLANG")
    if not named:
        return None
    root = Path(named)
    if not (root / "sglang" / "kernels" / "ops").is_dir():
        raise FileNotFoundError(f"CLOVER_BENCH_SGLANG={named} holds no sglang/kernels/ops")
    for name in _PACKAGES:
        module = ModuleType(name)
        module.__path__ = [str(root / name.replace(".", "/"))]
        sys.modules[name] = module
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    no, refuse = (lambda *_, **__: False), _refuse
    flag = type("Flag", (), {"get": staticmethod(no)})
    quantizers = ("per_token_group_quant_fp8", "scaled_fp8_quant", "sglang_per_token_group_quant_fp8")
    integers = ("per_token_group_quant_int8", "per_token_quant_int8", "sglang_per_token_group_quant_int8")
    _stand_in("sglang.kernels.jit.utils", is_arch_support_pdl=lambda: torch.cuda.get_device_capability()[0] >= 9)
    _stand_in("sglang.kernels.ops.quantization.fp8_kernel", **dict.fromkeys(quantizers, refuse))
    _stand_in("sglang.kernels.ops.quantization.int8_kernel", **dict.fromkeys(integers, refuse))
    _stand_in("sglang.srt.batch_invariant_ops", is_batch_invariant_mode_enabled=no)
    _stand_in("sglang.srt.environ", envs=type("Envs", (), {"__getattr__": lambda self, name: flag})())
    _stand_in("sglang.srt.layers.moe.utils", get_moe_padding_size=lambda *_: 0)
    _stand_in(
        "sglang.srt.utils", is_cuda=lambda: True, is_cpu=no, is_hip=no, cpu_has_amx_support=no, is_sm90_supported=no
    )
    _stand_in("sglang.srt.utils.common", torch_release=release)
    return root


def _refuse(*_: Any, **__: Any) -> None:
    raise NotImplementedError("quantized data are not part of the comparison")


def _stand_in(name: str, **contents: Any) -> None:
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        package = ".".join(parts[:end])
        if package not in sys.modules:
            sys.modules[package] = ModuleType(package)
            sys.modules[package].__path__ = []
    vars(sys.modules[name]).update(contents)


def function(module: str, name: str) -> Callable | None:
    """A function of `sglang.kernels.ops`; None where no folder is named."""
    return getattr(importlib.import_module(f"sglang.kernels.ops.{module}"), name) if _root() else None


# What SGLang's own tables choose for 256 experts of 512 on an H200, by the number of tokens; fewer than 256 take the first.
_CONFIGURATIONS = {
    256: {
        "BLOCK_SIZE_M": 16,
        "BLOCK_SIZE_N": 128,
        "BLOCK_SIZE_K": 128,
        "GROUP_SIZE_M": 16,
        "num_warps": 4,
        "num_stages": 2,
    },
    512: {
        "BLOCK_SIZE_M": 32,
        "BLOCK_SIZE_N": 128,
        "BLOCK_SIZE_K": 128,
        "GROUP_SIZE_M": 32,
        "num_warps": 4,
        "num_stages": 2,
    },
    1024: {
        "BLOCK_SIZE_M": 64,
        "BLOCK_SIZE_N": 128,
        "BLOCK_SIZE_K": 64,
        "GROUP_SIZE_M": 1,
        "num_warps": 4,
        "num_stages": 3,
    },
}


def _aligned_routes(ids: torch.Tensor, experts: int, block: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Routes sorted by expert, each expert's padded to whole blocks; the experts of the blocks; the padded number of routes."""
    flat = ids.flatten().long()
    counts = torch.bincount(flat, minlength=experts)
    blocks = (counts + block - 1) // block
    total = int(blocks.sum())
    first_padded, first = (blocks.cumsum(0) - blocks) * block, counts.cumsum(0) - counts
    order = flat.argsort(stable=True)
    rank = torch.arange(flat.numel(), device=ids.device) - first[flat[order]]
    routes = torch.full((total * block,), flat.numel(), dtype=torch.int32, device=ids.device)
    routes[first_padded[flat[order]] + rank] = order.to(torch.int32)
    owners = torch.arange(experts, device=ids.device).repeat_interleave(blocks).to(torch.int32)
    return routes, owners, torch.tensor([total * block], dtype=torch.int32, device=ids.device)


def moe(sets) -> list[Callable[[], object]] | None:
    """Both products, the activation and the reduction, with the routes sorted beforehand."""
    if _root() is None:
        return None
    import triton.language as tl

    kernels = importlib.import_module("sglang.kernels.ops.moe.fused_moe_triton_kernels")

    def call(x, w13, w2, ids, weights):
        tokens, top_k, experts = x.shape[0], ids.shape[1], w13.shape[0]
        config = _CONFIGURATIONS[min(_CONFIGURATIONS, key=lambda size: abs(size - tokens))]
        routes = _aligned_routes(ids, experts, config["BLOCK_SIZE_M"])
        up, down = x.new_empty(tokens * top_k, w13.shape[1]), x.new_empty(tokens, top_k, x.shape[1])
        inner, y = x.new_empty(tokens * top_k, w2.shape[2]), torch.empty_like(x)
        plain = dict.fromkeys(
            ("use_fp8_w8a8", "use_int8_w8a8", "use_int8_w8a16", "use_int4_w4a16", "per_channel_quant"), False
        )
        options = {"config": config, "compute_type": tl.bfloat16, "filter_expert": False, **plain}

        def run():
            scales = (None, None, None, weights, ids, *routes)
            kernels.invoke_fused_moe_kernel(x, w13, None, up, *scales, False, top_k, **options)
            kernels.act_and_mul_triton(up, inner, config)
            kernels.invoke_fused_moe_kernel(inner, w2, None, down, *scales, True, 1, **options)
            kernels.moe_sum_reduce_triton(down, y, 1.0)
            return y

        return run

    return [call(*s) for s in sets]
