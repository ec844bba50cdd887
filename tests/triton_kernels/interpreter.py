"""Triton's interpreter with BF16 as a GPU has it.

The interpreter keeps BF16 as bare 16-bit integers: it truncates where a GPU rounds to nearest even, and it multiplies
those integers in `tl.dot`. Both would fail, or worse pass, bounds that are meant for real arithmetic.
"""

from contextlib import contextmanager
from importlib import util
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest


@contextmanager
def loaded(folder: Path, name: str):
    """A kernel module, by its path, whose kernels run in the interpreter: Triton decides that when it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        tl = pytest.importorskip("triton.language", reason="Triton is not installed")
        from triton.runtime import interpreter

        if not isinstance(tl.zeros, interpreter.InterpretedFunction):
            pytest.skip("Triton was imported before, without its interpreter: run tests/triton_kernels by itself")
        _mend_bf16(interpreter, tl)
        spec = util.spec_from_file_location(f"clover_triton_{name}", folder / f"{name}.py")
        module = util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def _mend_bf16(interpreter, tl):
    builder = interpreter.InterpreterBuilder
    if hasattr(builder, "mended_bf16"):
        return
    convert_bits, multiply = interpreter._convert_float, builder.create_dot

    def convert(data, from_type, to_type, rounding):
        if (from_type, to_type) == (tl.float32, tl.bfloat16):
            return data.astype(ml_dtypes.bfloat16).view(np.uint16)
        return convert_bits(data, from_type, to_type, rounding)

    def widened(handle):
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return interpreter.TensorHandle(handle.data.view(ml_dtypes.bfloat16).astype(np.float32), tl.float32)

    def dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        return multiply(self, widened(a), widened(b), d, input_precision, max_num_imprecise_acc)

    interpreter._convert_float = convert
    builder.create_dot = dot
    builder.mended_bf16 = True
