"""The only module that knows the public Python interface of clover_ops.

A case is called in two ways: the functional form passes every argument by position, which fixes their order, and the
`out=` form passes them by name, which fixes the names.
"""

from dataclasses import dataclass

import clover_ops

OPERATORS = (
    "causal_conv1d",
    "preview_conv1d",
    "gated_delta_net_gating",
    "gated_delta_rule",
    "preview_gated_delta_rule",
    "preview_gdn",
    "topk_softmax",
    "block_coreset",
    "live_row_routes",
    "merge_live_rows",
    "fused_moe",
    "rotary_embedding",
    "rearrange",
    "cast",
    "rms_norm_gated",
)
BACKENDS = ("cpu", "nvidia", "hygon")

# How the front end refuses: no provider computes the call, the call is wrong, or its workspace is not good enough.
Unsupported = clover_ops.Unsupported
InvalidArgument = clover_ops.InvalidArgument
MissingWorkspace = clover_ops.MissingWorkspace

# Host attributes that only guide the choice of kernels: they follow the operator's own arguments, by name.
HINTS = ("max_seqlen",)


@dataclass(frozen=True)
class Target:
    """One provider of an active backend."""

    backend: str
    device_type: str
    slot: int
    name: str

    @property
    def torch_device(self):
        return "cpu" if self.device_type == "cpu" else "cuda"

    @property
    def checks_values(self):
        """Index values are always checked on the CPU, elsewhere bad ones make their sequence or row absent."""
        return self.device_type == "cpu"

    def __str__(self):
        return f"{self.backend}.{self.slot}"


def targets(operator):
    active = {backend.name for backend in clover_ops.backends() if backend.active}
    found = [Target(p.backend, p.device_type, p.slot, p.name) for p in clover_ops.providers(operator)]
    return sorted((t for t in found if t.backend in active), key=lambda t: (backends().index(t.backend), t.slot))


def backends():
    """The backends of this repository, then those that are installed beside them."""
    return [*BACKENDS, *sorted({backend.name for backend in clover_ops.backends()} - set(BACKENDS))]


def active_backends():
    return [backend.name for backend in clover_ops.backends() if backend.active]


def inactive_backends():
    """(name, reason) of each backend that cannot run here, those that are not installed included."""
    known = {backend.name: backend for backend in clover_ops.backends()}
    reasons = []
    for name in backends():
        if name not in known:
            reasons.append((name, "not installed"))
        elif not known[name].active:
            reasons.append((name, known[name].reason))
    return reasons


def call_functional(operator, arguments, provider):
    """Returns the outputs as a tuple, () for an operator that only works in place."""
    positional = [value for name, value in arguments.items() if name not in HINTS]
    hints = {name: value for name, value in arguments.items() if name in HINTS}
    result = getattr(clover_ops, operator)(*positional, provider=provider, **hints)
    if result is None:
        return ()
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def call_out(operator, arguments, provider, out, workspace=None):
    keywords = {**arguments, "provider": provider}
    if out:
        keywords["out"] = tuple(out) if len(out) > 1 else out[0]
    if workspace is not None:
        keywords["workspace"] = workspace
    getattr(clover_ops, operator)(**keywords)


def workspace_size(operator, arguments, provider):
    """Bytes that the `out=` form needs; an operator without a size function needs none."""
    function = getattr(clover_ops, f"{operator}_workspace_size", None)
    return 0 if function is None else int(function(**arguments, provider=provider))
