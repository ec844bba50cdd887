"""Triton's interpreter with BF16 as a GPU has it.

The interpreter keeps BF16 as bare 16-bit integers: it truncates where a GPU rounds to nearest even, and it multiplies
those integers in `tl.dot`. Both would fail, or worse pass, bounds that are meant for real arithmetic.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"  # before the kernels are defined

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

_convert_bits = interpreter._convert_float
_multiply = interpreter.InterpreterBuilder.create_dot


def _convert(data, from_type, to_type, rounding):
    if (from_type, to_type) == (tl.float32, tl.bfloat16):
        return data.astype(ml_dtypes.bfloat16).view(np.uint16)
    return _convert_bits(data, from_type, to_type, rounding)


def _widened(handle):
    if handle.dtype.scalar != tl.bfloat16:
        return handle
    return interpreter.TensorHandle(handle.data.view(ml_dtypes.bfloat16).astype(np.float32), tl.float32)


def _dot(self, a, b, d, input_precision, max_num_imprecise_acc):
    return _multiply(self, _widened(a), _widened(b), d, input_precision, max_num_imprecise_acc)


def activate():
    interpreter._convert_float = _convert
    interpreter.InterpreterBuilder.create_dot = _dot
