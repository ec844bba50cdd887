# Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit.
from typing import Any

from ._api import backends as backends
from ._api import describe as describe
from ._api import providers as providers
from ._api import provides as provides
from ._api import supports as supports
from ._api import warmup as warmup
from ._version import __version__ as __version__
from .errors import AbiMismatch as AbiMismatch
from .errors import CloverError as CloverError
from .errors import CompileError as CompileError
from .errors import DriverError as DriverError
from .errors import InternalError as InternalError
from .errors import InvalidArgument as InvalidArgument
from .errors import MissingWorkspace as MissingWorkspace
from .errors import Unsupported as Unsupported

# torch.Tensor, numpy.ndarray, or anything with __dlpack__.
Tensor = Any

def causal_conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    conv_state: Tensor,
    cu_seqlens: Tensor,
    initial_state_indices: Tensor,
    final_state_indices: Tensor,
    activation: str = ...,
    max_seqlen: int | None = ...,
    *,
    out: Any | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> Tensor: ...

def preview_conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    conv_state: Tensor,
    cu_seqlens: Tensor,
    initial_state_indices: Tensor,
    activation: str = ...,
    max_seqlen: int | None = ...,
    *,
    out: Any | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> Tensor: ...

def gated_delta_net_gating(
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    *,
    out: Any | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> tuple[Tensor, Tensor]: ...

def gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor,
    initial_state_indices: Tensor,
    final_state_indices: Tensor,
    scale: float | None = ...,
    l2norm: bool = ...,
    max_seqlen: int | None = ...,
    *,
    out: Any | None = ...,
    workspace: Tensor | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> Tensor: ...

def gated_delta_rule_workspace_size(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor,
    initial_state_indices: Tensor,
    final_state_indices: Tensor,
    scale: float | None = ...,
    l2norm: bool = ...,
    max_seqlen: int | None = ...,
    *,
    provider: int | None = ...,
) -> int: ...

def preview_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor,
    initial_state_indices: Tensor,
    scale: float | None = ...,
    l2norm: bool = ...,
    read: str = ...,
    max_seqlen: int | None = ...,
    *,
    out: Any | None = ...,
    workspace: Tensor | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> Tensor: ...

def preview_gated_delta_rule_workspace_size(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor,
    initial_state_indices: Tensor,
    scale: float | None = ...,
    l2norm: bool = ...,
    read: str = ...,
    max_seqlen: int | None = ...,
    *,
    provider: int | None = ...,
) -> int: ...

def preview_gdn(
    qkv: Tensor,
    a: Tensor,
    b: Tensor,
    z: Tensor | None,
    conv_weight: Tensor,
    conv_bias: Tensor | None,
    conv_state: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    state: Tensor,
    cu_seqlens: Tensor,
    initial_state_indices: Tensor,
    norm_weight: Tensor | None = ...,
    eps: float = ...,
    scale: float | None = ...,
    read: str = ...,
    max_seqlen: int | None = ...,
    *,
    out: Any | None = ...,
    workspace: Tensor | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> Tensor: ...

def preview_gdn_workspace_size(
    qkv: Tensor,
    a: Tensor,
    b: Tensor,
    z: Tensor | None,
    conv_weight: Tensor,
    conv_bias: Tensor | None,
    conv_state: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    state: Tensor,
    cu_seqlens: Tensor,
    initial_state_indices: Tensor,
    norm_weight: Tensor | None = ...,
    eps: float = ...,
    scale: float | None = ...,
    read: str = ...,
    max_seqlen: int | None = ...,
    *,
    provider: int | None = ...,
) -> int: ...

def topk_softmax(
    logits: Tensor,
    k: int,
    renormalize: bool = ...,
    *,
    out: Any | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> tuple[Tensor, Tensor]: ...

def block_coreset(
    logits: Tensor,
    cu_seqlens: Tensor,
    live: Tensor | None,
    k: int,
    budget: int,
    mode: str = ...,
    top_p: float | None = ...,
    renormalize: bool = ...,
    *,
    out: Any | None = ...,
    workspace: Tensor | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> tuple[Tensor, Tensor, Tensor]: ...

def block_coreset_workspace_size(
    logits: Tensor,
    cu_seqlens: Tensor,
    live: Tensor | None,
    k: int,
    budget: int,
    mode: str = ...,
    top_p: float | None = ...,
    renormalize: bool = ...,
    *,
    provider: int | None = ...,
) -> int: ...

def live_row_routes(
    ids: Tensor,
    weights: Tensor,
    live: Tensor,
    *,
    out: Any | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...

def merge_live_rows(
    fresh: Tensor,
    cache: Tensor,
    live: Tensor,
    *,
    out: Any | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> Tensor: ...

def fused_moe(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    ids: Tensor,
    weights: Tensor,
    shared_w13: Tensor | None = ...,
    shared_w2: Tensor | None = ...,
    shared_gate: Tensor | None = ...,
    routed_scale: float = ...,
    weight_layout: str = ...,
    *,
    out: Any | None = ...,
    workspace: Tensor | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> Tensor: ...

def fused_moe_workspace_size(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    ids: Tensor,
    weights: Tensor,
    shared_w13: Tensor | None = ...,
    shared_w2: Tensor | None = ...,
    shared_gate: Tensor | None = ...,
    routed_scale: float = ...,
    weight_layout: str = ...,
    *,
    provider: int | None = ...,
) -> int: ...

def rotary_embedding(
    positions: Tensor,
    q: Tensor,
    k: Tensor,
    cos_sin: Tensor,
    interleaved: bool = ...,
    *,
    provider: int | None = ...,
    stream: int | None = ...,
) -> None: ...

def rearrange(
    src: Tensor,
    dst: Tensor,
    *,
    provider: int | None = ...,
    stream: int | None = ...,
) -> None: ...

def cast(
    src: Tensor,
    dst: Tensor,
    *,
    provider: int | None = ...,
    stream: int | None = ...,
) -> None: ...

def rms_norm_gated(
    x: Tensor,
    weight: Tensor,
    z: Tensor,
    eps: float = ...,
    *,
    out: Any | None = ...,
    provider: int | None = ...,
    stream: int | None = ...,
) -> Tensor: ...
