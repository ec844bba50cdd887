"""What the generated functions stand on: converting tensors, making outputs and workspaces, and the call itself.

Nothing here imports torch or NumPy: a tensor of theirs proves that they are loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import _core
from .errors import CloverError, InvalidArgument, MissingWorkspace

ALIGNMENT = 256
ANY_SLOT = -1
ASK = -1  # as workspace bytes: tell how many are missing
INT32 = (-(2**31), 2**31 - 1)

# What sizing an output from wrong inputs may raise; the native library then says what was wrong with them.
UNSIZED = (IndexError, AttributeError, TypeError, ValueError, RuntimeError, MemoryError)

NOT_TRACED = "torch.jit.trace cannot record this call: use torch.compile, torch.export or torch.ops.clover"
HAS_TANGENT = "carries a forward-mode tangent, and clover-ops is for inference: pass unpack_dual(tensor).primal"
NEEDS_NO_GRAD = (
    "requires grad, and clover-ops is for inference: call it under torch.no_grad() or torch.inference_mode(), or detach the "
    "tensor"
)

# Asks run_with_workspace to make a workspace although `out` was given.
ALLOCATE = object()


class Unsized:
    """Stands for an output that could not be made: the native library hears of a missing one, once the rest is right."""

    def __init__(self, cause: Exception):
        self.cause = cause


class _Functions:
    """Native functions by operator name, looked up once each."""

    def __getattr__(self, name: str) -> Any:
        function = _core.binding().get_global_func(f"clover_ops.{name}", allow_missing=True)
        if function is None:
            raise AttributeError(f"the native library has no function {name}")
        setattr(self, name, function)
        return function


class _Traced:
    """The functions of _generated/torch_ops.py, imported when torch.compile first needs one."""

    def __getattr__(self, name: str) -> Any:
        from ._generated import torch_ops

        return getattr(torch_ops, name)


ffi = _Functions()
traced = _Traced()


def compiling() -> bool:
    """Whether torch.compile or torch.export is tracing this call."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return compiler is not None and compiler.is_compiling()


# --- tensors ---------------------------------------------------------------------------------------------------------


def _module_of(tensor: Any) -> str:
    return type(tensor).__module__.partition(".")[0]


_torch_module: Any = None
_are_plain: Any = None  # of _plain_check, once torch is there


def _torch() -> Any:
    """The torch module if it is loaded; while another thread is still importing it, none of its tensors can be here."""
    global _torch_module, _are_plain
    if _torch_module is None:
        torch = sys.modules.get("torch")
        if torch is None or getattr(torch.__spec__, "_initializing", False):
            return None
        _are_plain = _plain_check(torch)
        _torch_module = torch
    return _torch_module


def _is_torch(tensor: Any) -> bool:
    torch = _torch_module or _torch()
    return torch is not None and isinstance(tensor, torch.Tensor)


def _is_numpy(tensor: Any) -> bool:
    ndarray = getattr(sys.modules.get("numpy"), "ndarray", None)
    return ndarray is not None and isinstance(tensor, ndarray)


def new(like: Any, shape: tuple[int, ...], dtype: str | None, fill: int | None) -> Any:
    """A tensor of the same kind and on the same device as `like`; dtype None takes like's; fill None leaves it unset."""
    if _is_torch(like):
        make = like.new_zeros if fill == 0 else like.new_empty
        # Sizes one by one: torch takes as long again to read them from a tuple.
        tensor = make(*shape) if dtype is None else make(*shape, dtype=getattr(sys.modules["torch"], dtype))
        return tensor.fill_(fill) if fill else tensor
    return _new_elsewhere(like, shape, dtype, fill)


def _new_elsewhere(like: Any, shape: tuple[int, ...], dtype: str | None, fill: int | None) -> Any:
    import numpy

    if _is_numpy(like):
        module = numpy
    elif _module_of(like) == "cupy":
        module = sys.modules["cupy"]
    else:
        raise InvalidArgument(
            f"outputs for a {type(like).__module__}.{type(like).__name__} cannot be made here; pass tensors to write as out="
        )
    wanted = like.dtype if dtype is None else numpy.dtype(dtype)
    if fill is None:
        return module.empty(shape, wanted)
    return module.full(shape, fill, wanted)


def unpack(operator: str, out: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(out, (tuple, list)) or len(out) != len(names):
        got = f"{len(out)} of them" if isinstance(out, (tuple, list)) else type(out).__name__
        raise InvalidArgument(
            f"{operator}: out must be a tuple of {len(names)} tensors ({', '.join(names)}), got {got}"
        )
    return tuple(out)


def export(tensor: Any) -> Any:
    """What the binding takes for a tensor. Whatever it returns must live until the call is over."""
    if _is_numpy(tensor):
        from ._numpy import view

        return view(tensor)
    if hasattr(tensor, "__dlpack__"):
        try:
            return _core.binding().from_dlpack(tensor, require_alignment=0, require_contiguous=False)
        except (RuntimeError, BufferError, ValueError) as error:
            raise InvalidArgument(f"cannot be read through DLPack: {error}") from None
    raise TypeError(f"must be a tensor (torch, NumPy or DLPack), got {type(tensor).__name__}: {str(tensor)[:80]}")


def _export_torch(tensor: Any, torch: Any, grad: bool) -> Any:
    if grad and tensor.requires_grad:
        raise InvalidArgument(NEEDS_NO_GRAD)
    if (
        torch.autograd.forward_ad._current_level >= 0
        and torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None
    ):
        raise InvalidArgument(HAS_TANGENT)
    if tensor.layout is not torch.strided:
        raise InvalidArgument(f"must be a strided tensor, got layout {tensor.layout}")
    if not (tensor.is_cpu or tensor.is_cuda):
        raise InvalidArgument(f"is on device {tensor.device}, where no backend runs")
    if tensor.is_neg() or tensor.is_conj():
        raise InvalidArgument(
            "is a view that torch negates or conjugates when it is read (as `z.conj().imag`), so its memory holds other "
            "values: call resolve_neg() or resolve_conj() first"
        )
    return tensor if type(tensor) is torch.Tensor else tensor.as_subclass(torch.Tensor)


def _stream_of(tensor: Any) -> int:
    """The current stream of a device tensor's framework, as a raw handle."""
    if _is_torch(tensor):
        return _torch_stream(tensor.get_device()) if tensor.is_cuda else 0
    if _module_of(tensor) == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    return 0


def _torch_stream(device: int) -> int:
    """torch.cuda.current_stream without the Python object around it, as Dynamo and Triton read it: µs of every call."""
    return _torch()._C._cuda_getCurrentRawStream(device)


# --- calls -----------------------------------------------------------------------------------------------------------


def _prepared(operator: str, tensors: tuple[Any, ...], indices: tuple[int, ...], stream: Any) -> tuple[Any, int]:
    """The tensors as the binding takes them (int64 index tensors as int32, foreign ones as views), and the stream's handle."""
    if (_are_plain is None and _torch() is None) or not _are_plain(tensors):
        return _exported_one_by_one(operator, tensors, indices, _torch()), _handle(operator, stream, tensors[0])
    if stream is not None:
        return tensors, _handle(operator, stream, None)
    first = tensors[0]
    return tensors, _torch_stream(first.get_device()) if first is not None and first.is_cuda else 0


def _plain_check(torch: Any) -> Callable[[tuple[Any, ...]], bool]:
    """are_plain(tensors): whether all are torch tensors (or None) that need no conversion: nearly every call of everyone.

    Each look at a tensor costs 50 to 100 ns, so they are few, and what they look at is at hand: torch's lazy negation comes
    from complex numbers, so it is possible in float32 and float16, and conjugation in no plain dtype; int64 may need
    converting, and layouts and devices are left to the binding.
    """
    plain, float32, float16 = torch.Tensor, torch.float32, torch.float16
    dtypes = frozenset({torch.bfloat16, torch.float16, torch.float32, torch.int32, torch.bool})
    grad_enabled, tracing, forward = torch.is_grad_enabled, torch._C._is_tracing, torch.autograd.forward_ad

    def are_plain(tensors: tuple[Any, ...]) -> bool:
        if forward._current_level >= 0 or tracing():
            return False
        grad = grad_enabled()
        for tensor in tensors:
            if type(tensor) is plain:
                dtype = tensor.dtype
                if dtype not in dtypes or (grad and tensor.requires_grad):
                    return False
                if (dtype is float32 or dtype is float16) and tensor.is_neg():
                    return False
            elif tensor is not None:
                return False
        return True

    return are_plain


def _exported_one_by_one(operator: str, tensors: tuple[Any, ...], indices: tuple[int, ...], torch: Any) -> list[Any]:
    if torch is not None and torch._C._is_tracing():
        raise InvalidArgument(f"{operator}: {NOT_TRACED}")
    grad = torch is not None and torch.is_grad_enabled()
    exported: list[Any] = []
    try:
        for position, tensor in enumerate(tensors):
            if tensor is None or type(tensor) is Unsized:
                exported.append(None)
                continue
            if position in indices:
                tensor = _int32(tensor)
            if _is_torch(tensor):
                exported.append(_export_torch(tensor, torch, grad))
            else:
                if _is_numpy(tensor) and not tensor.flags.writeable:
                    _check_read_only(operator, position)
                exported.append(export(tensor))
    except (InvalidArgument, TypeError) as error:
        argument = _operator(operator).tensors[len(exported)].name
        raise type(error)(f"{operator}: {argument} {error}") from None
    return exported


def _int32(tensor: Any) -> Any:
    """Index tensors may be int64: those become int32. Values beyond int32 are clamped, which keeps them out of range."""
    torch = _torch()
    dtype = getattr(tensor, "dtype", None)
    if torch is not None and dtype is torch.int64 and tensor.layout is torch.strided:
        return tensor.clamp(*INT32).to(torch.int32)
    if (_is_numpy(tensor) or _module_of(tensor) == "cupy") and dtype == "int64":
        return tensor.clip(*INT32).astype("int32")
    return tensor


def _operator(name: str) -> Any:
    from ._generated.table import OPERATORS

    return next(op for op in OPERATORS if op.name == name)


def _check_read_only(operator: str, position: int) -> None:
    if _operator(operator).tensors[position].role != "in":
        raise InvalidArgument("is written, but the array is read-only")


def _slot(operator: str, provider: Any) -> int:
    if provider is None:
        return ANY_SLOT
    if isinstance(provider, bool) or not isinstance(provider, int) or not 0 <= provider < 2**31:
        raise InvalidArgument(f"{operator}: provider must be a slot number, at least 0, or None, got {provider!r}")
    return provider


def _handle(operator: str, stream: Any, tensor: Any) -> int:
    if stream is None:
        return _stream_of(tensor)
    if isinstance(stream, bool) or not isinstance(stream, int) or not 0 <= stream < 2**63:
        raise InvalidArgument(f"{operator}: stream must be a raw stream handle or None, got {stream!r}")
    return stream


def _explained(operator: str, tensors: tuple[Any, ...], error: Exception) -> Exception:
    """What to raise instead of an error that does not say which argument it is about, or why an output is missing."""
    for tensor, argument in zip(tensors, _operator(operator).tensors):
        if isinstance(error, CloverError):
            if type(tensor) is Unsized and str(error) == f"{operator}: {argument.name} is missing":
                return InvalidArgument(f"{operator}: {argument.name} could not be made: {tensor.cause}")
        elif _is_torch(tensor):
            try:
                tensor.detach().__dlpack__()
            except Exception as refusal:
                reason = str(refusal).partition("\n")[0]
                return InvalidArgument(f"{operator}: {argument.name} cannot be read through DLPack: {reason}")
    return error


def _raise_explained(operator: str, tensors: tuple[Any, ...], error: Exception) -> None:
    better = _explained(operator, tensors, error)
    if better is error:
        raise error
    raise better from None


def _call(function: Any, operator: str, tensors: tuple[Any, ...], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (InvalidArgument, RuntimeError, BufferError) as error:
        _raise_explained(operator, tensors, error)


def run(
    name: str,
    tensors: tuple[Any, ...],
    indices: tuple[int, ...],
    attributes: tuple[Any, ...],
    provider: Any,
    stream: Any,
) -> None:
    exported, handle = _prepared(name, tensors, indices, stream)
    slot = ANY_SLOT if provider is None else _slot(name, provider)
    try:
        getattr(ffi, name)(handle, 0, 0, slot, *exported, *attributes)
    except (InvalidArgument, RuntimeError, BufferError) as error:
        _raise_explained(name, tensors, error)


def run_with_workspace(
    name: str,
    tensors: tuple[Any, ...],
    indices: tuple[int, ...],
    attributes: tuple[Any, ...],
    provider: Any,
    stream: Any,
    workspace: Any,
    allocate: bool,
) -> None:
    exported, handle = _prepared(name, tensors, indices, stream)
    slot = ANY_SLOT if provider is None else _slot(name, provider)
    function = getattr(ffi, name)
    if workspace is ALLOCATE or (workspace is None and allocate):
        # Asked so, the binding returns the bytes that are missing instead of raising, and has then done nothing.
        missing = _call(function, name, tensors, handle, 0, ASK, slot, *exported, *attributes)
        if missing:
            workspace, address = _make_workspace(tensors[0], missing)
            _call(function, name, tensors, handle, address, missing, slot, *exported, *attributes)
        return
    address, size = (0, 0) if workspace is None else _given_workspace(name, workspace, tensors[0])
    _call(function, name, tensors, handle, address, size, slot, *exported, *attributes)


def workspace_size(
    name: str, inputs: tuple[Any, ...], indices: tuple[int, ...], attributes: tuple[Any, ...], provider: Any
) -> int:
    """Outputs are sized by inputs, so the query goes without them."""
    outputs = [None] * sum(tensor.role == "out" for tensor in _operator(name).tensors)
    exported = [*_prepared(name, inputs, indices, 0)[0], *outputs]
    query = getattr(ffi, f"{name}.workspace_size")
    return _call(query, name, inputs, 0, 0, 0, _slot(name, provider), *exported, *attributes)


def _make_workspace(like: Any, size: int) -> tuple[Any, int]:
    """The owner of the memory, and an aligned address in it: allocators promise less than a workspace needs."""
    if _is_torch(like):
        torch = sys.modules["torch"]
        buffer = torch.empty(size + ALIGNMENT, dtype=torch.uint8, device=like.device)
        address = buffer.data_ptr()
    else:
        buffer = _new_elsewhere(like, (size + ALIGNMENT,), "uint8", None)
        address = buffer.data.ptr if _module_of(buffer) == "cupy" else buffer.ctypes.data
    return buffer, (address + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def _place_of(tensor: Any) -> str:
    """The device, as torch writes it; empty where that is not known."""
    if _is_torch(tensor):
        return str(tensor.device)
    if _module_of(tensor) == "cupy":
        return f"cuda:{tensor.device.id}"
    return "cpu" if _is_numpy(tensor) else ""


def _given_workspace(name: str, workspace: Any, tensor: Any) -> tuple[int, int]:
    if not (_is_torch(workspace) and _is_torch(tensor) and workspace.device == tensor.device):
        there, here = _place_of(workspace), _place_of(tensor)
        if there and here and there != here:
            raise MissingWorkspace(f"{name}: workspace is on {there}, the tensors are on {here}")
    if _is_torch(workspace):
        if not workspace.is_contiguous():
            raise MissingWorkspace(f"{name}: workspace must be contiguous")
        return workspace.data_ptr(), workspace.numel() * workspace.element_size()
    if _is_numpy(workspace):
        if not workspace.flags.c_contiguous or not workspace.flags.writeable:
            raise MissingWorkspace(f"{name}: workspace must be contiguous and writeable")
        return workspace.ctypes.data, workspace.nbytes
    if _module_of(workspace) == "cupy":
        return workspace.data.ptr, workspace.nbytes
    raise TypeError(f"{name}: workspace must be a torch, NumPy or CuPy array, got {type(workspace).__name__}")
