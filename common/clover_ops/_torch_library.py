"""Registration of torch.ops.clover.* and the helpers of its traced functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._runtime import NEEDS_NO_GRAD
from .errors import InvalidArgument

_library = torch.library.Library("clover", "DEF")


def register(name: str, schema: str, function: Callable, fake: Callable) -> None:
    """Defines clover::<name>, which runs `function` on CPU and GPU tensors and `fake` on tensors without data."""
    _library.define(name + schema)
    for key in ("CPU", "CUDA"):
        _library.impl(name, function, key)
    torch.library.register_fake(f"clover::{name}", _inference_only(name, fake), lib=_library)


def _inference_only(name: str, fake: Callable) -> Callable:
    """Compiled code runs the kernels without grad mode, where no call can see that a gradient is lost: refused while it is
    traced instead."""

    def checked(*arguments: Any, **keywords: Any) -> Any:
        if torch.is_grad_enabled():
            for argument in (*arguments, *keywords.values()):
                if isinstance(argument, torch.Tensor) and argument.requires_grad:
                    raise InvalidArgument(f"{name.partition('.')[0]}: a tensor {NEEDS_NO_GRAD}")
        return fake(*arguments, **keywords)

    return checked


def returns_nothing(*_arguments: Any, **_keywords: Any) -> None:
    """The fake kernel of an operator whose results are all in its arguments."""


def refuse_stream(operator: str, stream: Any) -> None:
    """Where the graph may break, the call is then made as it stands, on the stream it names."""
    if stream is not None:
        raise InvalidArgument(
            f"{operator}: stream= cannot be traced, since compiled code runs on the current stream: leave it out, and make the "
            "stream current by torch.cuda.stream"
        )


def new(like: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype | None, fill: int | None) -> torch.Tensor:
    dtype = like.dtype if dtype is None else dtype
    if fill is None:
        return like.new_empty(shape, dtype=dtype)
    return like.new_full(shape, fill, dtype=dtype)


def index(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype != torch.int64:
        return tensor
    return tensor.clamp(-(2**31), 2**31 - 1).to(torch.int32)
