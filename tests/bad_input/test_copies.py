"""rearrange and cast of random strided arrays, against NumPy."""

import clover_ops
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.smoke

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [BF16, np.dtype("f2"), np.dtype("f4")]
ELEMENTS = [*FLOATS, *map(np.dtype, ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f8", "c8"))]
CASES = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def layouts(draw, shape, broadcast):
    """How to make a view of that shape: axes in another order, steps, reversed, with gaps, or repeated."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])) for _ in shape]
    starts = [draw(st.integers(0, 2)) for _ in shape]
    repeated = [broadcast and draw(st.integers(0, 7)) == 0 for _ in shape]
    return order, steps, starts, repeated


def buffer(shape, layout, dtype, fill):
    """An array that has room for the view of it."""
    order, steps, starts, repeated = layout
    sizes = [1 if r else start + max(n, 1) * abs(step) for n, step, start, r in zip(shape, steps, starts, repeated)]
    base = np.empty([sizes[axis] for axis in order], dtype)
    base.reshape(-1).view(np.uint8)[...] = fill(base.nbytes)
    return base


def view(base, shape, layout):
    order, steps, starts, repeated = layout
    if not shape:
        return base
    axes = base.transpose(np.argsort(order))
    parts = zip(shape, steps, starts, repeated)
    axes = axes[tuple(slice(0, 1) if r else slice(a, a + n * abs(step), abs(step)) for n, step, a, r in parts)]
    axes = axes[tuple(slice(None, None, -1) if step < 0 else slice(None) for step in steps)]
    return np.broadcast_to(axes, shape) if any(repeated) else axes


SHAPES = st.lists(st.integers(0, 5), max_size=6).map(tuple)


@st.composite
def problems(draw, dtypes):
    shape = draw(SHAPES)
    return shape, draw(layouts(shape, True)), draw(layouts(shape, False)), *(draw(st.sampled_from(d)) for d in dtypes)


def _bits(array):
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8)


@CASES
@given(problems([ELEMENTS]), st.integers(0, 2**32 - 1))
def test_rearrange(problem, seed):
    shape, source, target, dtype = problem
    rng = np.random.default_rng(seed)
    top = 2 if dtype.kind == "b" else 256
    src = view(buffer(shape, source, dtype, lambda n: rng.integers(0, top, n, np.uint8)), shape, source)
    base = buffer(shape, target, dtype, lambda n: np.full(n, top // 2, np.uint8))
    dst, expected_base = view(base, shape, target), base.copy()
    expected = view(expected_base, shape, target)
    expected[...] = src
    clover_ops.rearrange(src, dst)
    assert np.array_equal(_bits(dst), _bits(src))
    assert np.array_equal(_bits(base), _bits(expected_base))  # what lies between the elements stayed


@CASES
@given(problems([FLOATS, FLOATS]), st.integers(0, 2**32 - 1))
def test_cast(problem, seed):
    shape, source, target, from_dtype, to_dtype = problem
    rng = np.random.default_rng(seed)
    random_bytes = buffer(shape, source, from_dtype, lambda n: rng.integers(0, 256, n, np.uint8))  # NaN, Inf among them
    src = view(random_bytes, shape, source)
    base = buffer(shape, target, to_dtype, lambda n: np.full(n, 0xA5, np.uint8))
    dst, expected_base = view(base, shape, target), base.copy()
    with np.errstate(all="ignore"):
        expected = src.astype(np.float32).astype(to_dtype) if from_dtype != to_dtype else src
    view(expected_base, shape, target)[...] = expected
    clover_ops.cast(src, dst)
    nan = np.isnan(src.astype(np.float32))
    assert np.array_equal(np.isnan(dst.astype(np.float32)), nan)
    assert np.array_equal(_bits(dst[~nan]), _bits(np.broadcast_to(expected, shape)[~nan]))
    mask = np.zeros(base.shape, bool)
    view(mask, shape, target)[...] = True
    assert np.array_equal(_bits(base[~mask]), _bits(expected_base[~mask]))
