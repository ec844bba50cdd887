"""Tensors inside larger poisoned buffers.

Every tensor of a case is a view of a slab: a flat buffer with margins on both sides and, where the layout has gaps,
between rows. Whatever a call may not write is compared bit for bit afterwards. Floating-point poison is NaN, so that a
read from outside a tensor shows in the result; integer poison is far outside every legal range.
"""

from dataclasses import dataclass, field
from math import prod

import ml_dtypes
import numpy as np
import torch

BF16 = np.dtype(ml_dtypes.bfloat16)
MARGIN_BYTES = 256
GAP = 24  # elements; keeps rows of 2- and 4-byte elements 16-byte aligned
ODD_GAP = 3

_TORCH_TYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "bool": torch.bool,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
}
_NUMPY_TYPES = {torch_type: np.dtype(BF16 if name == "bfloat16" else name) for name, torch_type in _TORCH_TYPES.items()}
_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def torch_dtype(dtype):
    return _TORCH_TYPES[np.dtype(dtype).name]


def bits(array):
    """The same memory as integers, for comparisons that see NaN payloads and the sign of zero."""
    array = np.ascontiguousarray(array)
    return array.view(_BITS[array.dtype.itemsize])


def poison(dtype):
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return 1
    if dtype == BF16 or dtype.kind == "f":
        return -1
    return int.from_bytes(b"\x7b" * dtype.itemsize, "little")


def to_numpy(tensor):
    flat = tensor.detach().cpu().contiguous()
    dtype = _NUMPY_TYPES[flat.dtype]
    return flat.view(_torch_bits(dtype)).numpy().view(dtype)


def _torch_bits(dtype):
    return torch_dtype(_BITS[np.dtype(dtype).itemsize])


@dataclass(frozen=True)
class Layout:
    """Memory order of a tensor of any shape: `order` lists the axes from the outermost to the innermost, `gaps` the
    elements left free after each step of an axis, `step` the innermost stride, `offset` where the first one lies."""

    order: tuple[int, ...] | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    step: int = 1
    offset: int = 0

    def place(self, shape):
        order = range(len(shape)) if self.order is None else self.order
        gaps = dict(self.gaps)
        strides, stride = [0] * len(shape), self.step
        for axis in reversed(list(order)):
            stride += gaps.get(axis, 0)
            strides[axis] = stride
            stride *= max(shape[axis], 1)
        return Placement(tuple(strides), self.offset, self.offset + stride)


@dataclass(frozen=True)
class Placement:
    strides: tuple[int, ...]
    offset: int
    extent: int
    slab: str | None = None
    """Tensors that name the same slab share a buffer."""


DENSE = Layout()
OFFSET = Layout(offset=ODD_GAP)


def rows(ndim, gap=GAP):
    """Tokens (or slots) apart from each other, each one dense."""
    return Layout(gaps=((0, gap),)) if ndim > 1 else DENSE


def gapped(ndim):
    """A gap behind each step of every axis except the last, and an odd start."""
    return Layout(gaps=tuple((axis, ODD_GAP) for axis in range(ndim - 1)), offset=1)


LAYOUTS = {"dense": lambda ndim: DENSE, "offset": lambda ndim: OFFSET, "rows": rows, "gapped": gapped}


def swapped(ndim, gap=0):
    """The last two axes exchanged in memory: unit stride in the last but one."""
    order = (*range(ndim - 2), ndim - 1, ndim - 2)
    return Layout(order=order, gaps=((0, gap),) if gap else ())


def packed(slab, shapes, gap=0):
    """Tensors side by side in the rows of one matrix, as q | k | v come out of a projection."""
    widths = [prod(shape[1:]) for shape in shapes.values()]
    row = sum(widths) + gap
    placements, offset = {}, 0
    for (name, shape), width in zip(shapes.items(), widths):
        inner = DENSE.place(shape[1:]).strides
        extent = row * shape[0]
        placements[name] = Placement((row, *inner), offset, extent, slab)
        offset += width
    return placements


def interleaved(slab, shapes):
    """Tensors of one shape whose elements alternate in memory."""
    placements = {}
    for offset, (name, shape) in enumerate(shapes.items()):
        dense = DENSE.place(shape)
        strides = tuple(stride * len(shapes) for stride in dense.strides)
        placements[name] = Placement(strides, offset, dense.extent * len(shapes), slab)
    return placements


@dataclass(frozen=True)
class Operand:
    """A tensor argument: its values, where it lies, and whether the call may write it."""

    array: np.ndarray
    layout: Layout | Placement = DENSE
    mutable: bool = False


@dataclass
class _Slab:
    dtype: np.dtype
    snapshot: np.ndarray
    """The bits before the call, margins included."""
    tensor: torch.Tensor | None = None
    writable: list[np.ndarray] = field(default_factory=list)
    """Views of a mask over the slab."""
    mask: np.ndarray | None = None


class Stage:
    """Operands laid out on a device, with what is needed to see afterwards what changed."""

    def __init__(self, operands, device):
        self._placements = {name: _place(operand) for name, operand in operands.items()}
        self._shapes = {name: operand.array.shape for name, operand in operands.items()}
        self._slabs = {}
        for name, operand in operands.items():
            self._write(name, operand)
        for slab in self._slabs.values():
            slab.tensor = _upload(slab, device)

    def tensor(self, name):
        slab, placement = self._slab(name)
        offset = _margin(slab.dtype) + placement.offset
        return slab.tensor.as_strided(self._shapes[name], placement.strides, offset)

    def values(self, name):
        return to_numpy(self.tensor(name))

    def check_untouched(self, mutables_too=False):
        """Every element outside the mutable tensors still has its bits: const tensors, gaps and margins."""
        for name, slab in self._slabs.items():
            after = self._bits(slab)
            changed = after != slab.snapshot
            if slab.mask is not None and not mutables_too:
                changed &= ~slab.mask
            if changed.any():
                first = int(np.flatnonzero(changed)[0]) - _margin(slab.dtype)
                raise AssertionError(f"{name}: {int(changed.sum())} elements that the call may not write changed, "
                                     f"the first at element {first} of its buffer")  # fmt: skip

    def fingerprint(self):
        """The bits of every buffer, for comparing two runs."""
        return {name: self._bits(slab) for name, slab in self._slabs.items()}

    def _slab(self, name):
        placement = self._placements[name]
        return self._slabs[placement.slab or name], placement

    def _write(self, name, operand):
        placement, dtype = self._placements[name], operand.array.dtype
        key = placement.slab or name
        margin = _margin(dtype)
        if key not in self._slabs:
            snapshot = np.full(placement.extent + 2 * margin, poison(dtype), _BITS[dtype.itemsize])
            self._slabs[key] = _Slab(dtype, snapshot)
        slab = self._slabs[key]
        _strided(slab.snapshot, placement, operand.array.shape, margin)[...] = bits(operand.array)
        if operand.mutable:
            if slab.mask is None:
                slab.mask = np.zeros(slab.snapshot.shape, bool)
            _strided(slab.mask, placement, operand.array.shape, margin)[...] = True

    @staticmethod
    def _bits(slab):
        return slab.tensor.detach().cpu().view(_torch_bits(slab.dtype)).numpy().copy()


def aligned_workspace(size, device, alignment=256, shift=0):
    """(workspace of `size` bytes, the whole poisoned buffer around it); `shift` moves it off its alignment."""
    whole = torch.full((size + 4 * alignment,), 0x5A, dtype=torch.uint8, device=device)
    start = alignment + -(whole.data_ptr() + alignment) % alignment + shift
    return whole[start : start + size], whole


def check_around(workspace, whole):
    start = workspace.data_ptr() - whole.data_ptr()
    outside = torch.cat([whole[:start], whole[start + workspace.numel() :]])
    assert bool((outside == 0x5A).all()), "workspace: bytes outside it were written"


def _place(operand):
    layout = operand.layout
    return layout if isinstance(layout, Placement) else layout.place(operand.array.shape)


def _margin(dtype):
    return MARGIN_BYTES // np.dtype(dtype).itemsize


def _strided(flat, placement, shape, margin):
    strides = tuple(stride * flat.itemsize for stride in placement.strides)
    return np.lib.stride_tricks.as_strided(flat[margin + placement.offset :], shape, strides)


def _upload(slab, device):
    """A copy even on the CPU: the snapshot must not share memory with what the call sees."""
    return torch.from_numpy(slab.snapshot).clone().to(device).view(torch_dtype(slab.dtype))
