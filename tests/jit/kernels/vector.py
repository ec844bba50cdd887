"""Small kernels that the JIT's tests compile: one plain, one with a helper from another module, one that needs scratch."""

import triton
import triton.language as tl

from .helper import scaled_sum


@triton.jit
def vector_add(x, y, out, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    total = tl.load(x + at * stride, mask=here) + tl.load(y + at * stride, mask=here)
    tl.store(out + at * stride, total, mask=here)


@triton.jit
def scaled_add(x, y, out, n, SCALE: tl.constexpr, DOUBLE: tl.constexpr, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    total = scaled_sum(tl.load(x + at, mask=here), tl.load(y + at, mask=here), SCALE)
    if DOUBLE:
        total += total
    tl.store(out + at, total.to(TYPE), mask=here)
