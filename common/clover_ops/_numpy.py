"""NumPy arrays as the native library's tensors: any strides, BF16 through ml_dtypes, read-only arrays for inputs."""

from __future__ import annotations

import ctypes
from typing import Any

from .errors import InvalidArgument

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_CPU = 1


class _Tensor(ctypes.Structure):
    """clover_tensor of clover/abi.h, which has DLPack's DLTensor layout."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Pointer(ctypes.c_void_p):
    """The address of a _Tensor that keeps it, and the array, alive."""


def view(array: Any) -> ctypes.c_void_p:
    dtype = array.dtype
    if dtype.name == "bfloat16":
        code = 4
    elif dtype.kind in _CODES and dtype.isnative:
        code = _CODES[dtype.kind]
    else:
        raise InvalidArgument(f"has NumPy dtype {dtype.name} ({dtype.str}), which no operator takes")
    item = dtype.itemsize
    if any(stride % item for stride in array.strides):
        raise InvalidArgument(f"has strides of {array.strides} bytes, which are no multiples of its item size {item}")
    rank = array.ndim
    tensor = _Tensor(
        array.ctypes.data, _CPU, 0, rank, code, 8 * item, 1,
        (ctypes.c_int64 * rank)(*array.shape),
        (ctypes.c_int64 * rank)(*(stride // item for stride in array.strides)),
        0,
    )  # fmt: skip
    pointer = _Pointer(ctypes.addressof(tensor))
    pointer.owners = (tensor, array)
    return pointer
