"""cast: every rounding bit for bit, strided on either side."""

from dataclasses import dataclass
from itertools import cycle, permutations, product

import numpy as np
import reference

from .arena import Operand, bits, poison
from .checks import same_values_or_nan
from .inputs import DTYPES, Case, normal, unique
from .runner import Problem
from .strided import EACH_ONCE, EVERY_PAIR, ORDERS, SHAPES

OPERATOR = "cast"


@dataclass(frozen=True)
class CastCase(Case):
    source: str
    target: str
    shape: tuple[int, ...]
    src: str
    dst: str
    values: str = "usual"

    def __str__(self):
        shape = "x".join(map(str, self.shape))
        return f"{self.source}-to-{self.target}-{shape}-{self.src}-to-{self.dst}-{self.values}"


VALUES = ("usual", "any_bits", "halfway", "edges")
PAIRS = tuple(permutations(DTYPES, 2))


def smoke_cases():
    for (source, target), values in product(PAIRS, VALUES):
        yield CastCase(source, target, (64, 128), "dense", "dense", values, smoke=True)
    for (source, target), (src, dst) in product(PAIRS, EACH_ONCE):
        yield CastCase(source, target, (3, 5, 7), src, dst, smoke=True)
    yield CastCase("fp32", "bf16", (2, 2, 3, 2, 3, 5), "rotated", "reversed", smoke=True)
    yield CastCase("fp32", "bf16", (4, 0, 3), "dense", "dense", smoke=True)


def full_cases():
    pairs, values = cycle(PAIRS), cycle((*VALUES, "usual"))
    for shape, (src, dst) in product(SHAPES, EVERY_PAIR):
        source, target = next(pairs)
        yield CastCase(source, target, shape, src, dst, next(values))
    for (source, target), shape, kind in product(PAIRS, SHAPES, VALUES):
        yield CastCase(source, target, shape, "swapped", "gapped", kind)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng = case.rng()
    source, target = DTYPES[case.source], DTYPES[case.target]
    src = _make_values(rng, case.shape, source, target, case.values)
    expected = reference.cast(src, target)
    dst = np.empty(case.shape, target)
    bits(dst)[...] = poison(target)

    def verify(values, notes):
        same_values_or_nan("dst", values["dst"], expected)

    ndim = len(case.shape)
    arguments = {"src": Operand(src, ORDERS[case.src](ndim)), "dst": Operand(dst, ORDERS[case.dst](ndim), mutable=True)}
    return Problem(OPERATOR, arguments, {}, verify)


def _make_values(rng, shape, source, target, kind):
    count = int(np.prod(shape))
    if kind == "any_bits":
        return rng.integers(0, 256, count * source.itemsize, np.uint8).view(source).reshape(shape)
    if kind == "halfway":
        return _between_neighbours(rng, count, target).astype(source).reshape(shape)
    if kind == "edges":
        edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504.0, 65519.9, 65520.0, 3.3895e38, -3.4e38, 2.0**-24, 2.0**-25,
                 2.0**-133, 2.0**-134, 2.0**-149, 1.0, 1 + 2.0**-8, 1 + 2.0**-11]  # fmt: skip
        with np.errstate(over="ignore"):
            return np.resize(np.array(edges, np.float32), count).astype(source).reshape(shape)
    return normal(rng, shape, source, 10.0)


def _between_neighbours(rng, count, target):
    """Float32 values half way between two neighbours of the target type, some a little to one side."""
    low = np.abs(normal(rng, (count,), target)).astype(target)
    high = (bits(low) + 1).view(target)
    middle = (low.astype(np.float64) + high.astype(np.float64)) / 2
    return (middle * (1 + 2.0**-22 * rng.integers(-1, 2, count))).astype(np.float32)


def test_cast(check):
    check(build)
