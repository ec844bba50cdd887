"""rearrange: any strided tensor into any other, every bit kept."""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from .arena import BF16, DENSE, Operand, Placement, bits, poison
from .checks import same_bits
from .inputs import Case, unique
from .runner import Problem
from .strided import EACH_ONCE, EVERY_PAIR, ORDERS, SHAPES

OPERATOR = "rearrange"


@dataclass(frozen=True)
class RearrangeCase(Case):
    dtype: str
    shape: tuple[int, ...]
    src: str
    dst: str

    def __str__(self):
        return f"{self.dtype}-{'x'.join(map(str, self.shape))}-{self.src}-to-{self.dst}"


TYPES = {
    "uint8": np.dtype(np.uint8),
    "int8": np.dtype(np.int8),
    "bool": np.dtype(np.bool_),
    "bf16": BF16,
    "fp16": np.dtype(np.float16),
    "int16": np.dtype(np.int16),
    "fp32": np.dtype(np.float32),
    "int32": np.dtype(np.int32),
    "fp64": np.dtype(np.float64),
    "int64": np.dtype(np.int64),
}
SMOKE_SHAPES = ((257,), (4, 33), (3, 5, 7), (2, 2, 3, 2, 3, 5))
REPEATED = "repeated"  # a source whose first axis does not move in memory


def smoke_cases():
    for (src, dst), dtype in zip(EACH_ONCE * 4, cycle(TYPES)):
        for shape in SMOKE_SHAPES:
            yield RearrangeCase(dtype, shape, src, dst, smoke=True)
    # Large enough for copies by tiles: in patches of a few elements, and element by element.
    for dtype in ("uint8", "bf16", "fp32", "fp64"):
        for shape in ((3, 136, 72), (40, 33)):
            yield RearrangeCase(dtype, shape, "swapped", "dense", smoke=True)
            yield RearrangeCase(dtype, shape, "dense", "reversed", smoke=True)
    yield RearrangeCase("bf16", (4, 33), REPEATED, "dense", smoke=True)
    yield RearrangeCase("bf16", (4, 0, 3), "dense", "dense", smoke=True)


def full_cases():
    sized = cycle(TYPES)
    for shape, (src, dst) in product(SHAPES, EVERY_PAIR):
        yield RearrangeCase(next(sized), shape, src, dst)
    for dtype, shape in product(TYPES, SHAPES):
        yield RearrangeCase(dtype, shape, "swapped", "gapped")
        yield RearrangeCase(dtype, shape, REPEATED, "dense")


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), TYPES[case.dtype]
    src = _any_bits(rng, case.shape, dtype)
    layout = ORDERS[case.src](len(case.shape)) if case.src != REPEATED else _repeated(case.shape)
    if case.src == REPEATED and case.shape[0]:
        src[...] = src[:1].copy()
    expected = reference.rearrange(src)
    dst = np.empty(case.shape, dtype)
    bits(dst)[...] = poison(dtype)

    def verify(values, notes):
        same_bits("dst", values["dst"], expected)

    arguments = {"src": Operand(src, layout), "dst": Operand(dst, ORDERS[case.dst](len(case.shape)), mutable=True)}
    return Problem(OPERATOR, arguments, {}, verify)


def _any_bits(rng, shape, dtype):
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    size = int(np.prod(shape)) * dtype.itemsize
    return rng.integers(0, 256, size, np.uint8).view(dtype).reshape(shape)


def _repeated(shape):
    inner = DENSE.place(shape[1:])
    return Placement((0, *inner.strides), 0, inner.extent)


def test_rearrange(check):
    check(build)
