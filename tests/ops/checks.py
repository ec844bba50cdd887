"""The bounds of the operator page, as it states them."""

import numpy as np

from .arena import bits

SMALL_OUTPUT = 1024  # fewer values than this: twice the bound, rounding does not average out
FP16_LEAST_RMS = 1e-3  # no FP16 bound is stated for weaker outputs
FP32_SUBNORMAL_STEP = 2.0**-149
FP32_SMALLEST_NORMAL = 2.0**-126

FP32_BOUND = 2e-6
DEEP_NEGATIVE_GATING = 4e-6
DATA_BOUNDS = {"bfloat16": 2.5e-3, "float16": 5e-4, "float32": FP32_BOUND}
COMPOUND_BOUNDS = {"bfloat16": 4e-3, "float16": 1e-3, "float32": FP32_BOUND}  # MoE and preview_gdn


def delta_rule_bound(tokens):
    """FP32 outputs and states of the delta rule, by the tokens of the sequence."""
    if tokens <= 1:
        return 2e-6
    return 2e-5 if tokens <= 64 else 1e-4


def close(name, actual, expected, bound):
    """`expected` is float64; where it is not finite, `actual` must not be either, and nothing else is asked."""
    dtype = actual.dtype
    actual = _same_shape(name, actual, expected).astype(np.float64)
    if expected.size == 0:
        return
    finite = np.isfinite(expected)
    _no_elements(name, finite & ~np.isfinite(actual), "not finite, unlike the reference", actual, expected)
    _no_elements(name, ~finite & np.isfinite(actual), "finite, unlike the reference", actual, expected)
    reference = np.where(finite, expected, 0.0)
    difference = np.where(finite, actual, 0.0) - reference

    norms, errors = _row_norms(reference), _row_norms(difference)
    silent = (norms == 0) & (errors > 0)
    if silent.any():
        raise AssertionError(f"{name}: {silent.sum()} rows are not zero where the reference is, first {_first(silent)}")
    if not norms.any():
        return
    rms = np.sqrt((reference**2).sum() / finite.sum())
    if dtype == np.float16 and rms < FP16_LEAST_RMS:
        raise RuntimeError(f"malformed case: {name} has a root mean square of {rms:.2e}, too weak for an FP16 bound")

    allowed = bound * (2 if expected.size < SMALL_OUTPUT else 1)
    relative = np.linalg.norm(errors) / np.linalg.norm(norms)
    assert relative <= allowed, f"{name}: relative error {relative:.3e} over the whole output, allowed {allowed:.1e}"
    rms_row = np.sqrt((norms**2).mean())
    rows = errors / np.maximum(norms, rms_row)
    worst = np.unravel_index(rows.argmax(), rows.shape)
    assert rows[worst] <= 2 * bound, (
        f"{name}: relative error {rows[worst]:.3e} in row {_ints(worst)}, allowed {2 * bound:.1e}"
    )


def close_by_length(name, actual, expected, lengths, bound_of):
    """`actual` and `expected` hold one entry per sequence, which has its own bound: each bound is checked by itself."""
    groups = {}
    for n, length in enumerate(lengths):
        groups.setdefault(bound_of(length), []).append(n)
    for bound, members in groups.items():
        got = [actual[n] for n in members]
        wanted = [expected[n] for n in members]
        close(f"{name} of sequences {members}", np.concatenate(got), np.concatenate(wanted), bound)


def close_gating(name, actual, expected, deep):
    """`deep`: every a + dt_bias is below -32. Subnormal results are then judged one by one: to the bound of a row, or to
    a subnormal step where that is coarser."""
    if not deep:
        close(name, actual, expected, FP32_BOUND)
        return
    tiny = np.abs(expected) < FP32_SMALLEST_NORMAL
    close(name, np.where(tiny, np.float32(0), actual), np.where(tiny, 0.0, expected), DEEP_NEGATIVE_GATING)
    allowed = np.maximum(2 * DEEP_NEGATIVE_GATING * np.abs(expected), FP32_SUBNORMAL_STEP)
    off = tiny & ~(np.abs(actual - expected) <= allowed)
    _no_elements(name, off, "further off than their bound and a subnormal step", actual, expected)


def same_bits(name, actual, expected):
    _same_shape(name, actual, expected)
    assert actual.dtype == expected.dtype, f"{name}: {actual.dtype}, expected {expected.dtype}"
    _no_elements(name, bits(actual) != bits(expected), "not bit for bit", actual, expected)


def same_values_or_nan(name, actual, expected):
    """Bit for bit, except that any NaN stands for any other."""
    nan = np.isnan(expected.astype(np.float64))
    _no_elements(name, nan & ~np.isnan(actual.astype(np.float64)), "not NaN", actual, expected)
    zero = np.zeros_like(expected)
    same_bits(name, np.where(nan, zero, actual), np.where(nan, zero, expected))


def all_equal(name, actual, value):
    _no_elements(name, ~(actual == value), f"not {value}", actual, np.broadcast_to(value, actual.shape))


def _same_shape(name, actual, expected):
    assert actual.shape == expected.shape, f"{name}: shape {actual.shape}, expected {expected.shape}"
    return actual


def _no_elements(name, wrong, what, actual, expected):
    if wrong.any():
        first = _first(wrong)
        raise AssertionError(
            f"{name}: {int(wrong.sum())} of {wrong.size} elements are {what}, first {first}: "
            f"{actual[first]!r}, reference {expected[first]!r}"
        )


def _row_norms(array):
    return np.sqrt((array**2).sum(-1))


def _first(mask):
    return _ints(np.unravel_index(mask.argmax(), mask.shape))


def _ints(index):
    return tuple(int(i) for i in index)
