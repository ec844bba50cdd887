"""NumPy arrays: any strides, read-only inputs, BF16 through ml_dtypes; and clear refusals of the rest."""

import clover_ops
import ml_dtypes
import numpy as np
import pytest
import torch
from bad_input.calls import valid_call
from clover_ops import InvalidArgument

from .cases import IDS, OPERATORS, PURE

pytestmark = pytest.mark.smoke

BF16 = np.dtype(ml_dtypes.bfloat16)


def as_numpy(op, **options):
    call = valid_call(op, **options)
    arrays = {
        n: o and o.numpy().copy() for n, o in call.operands.items() if op.tensor(n).role != "out" or not op.functional
    }
    return arrays, call.attributes


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_results_equal_torchs(op, dtype):
    dtypes = {"X": dtype, "Y": dtype, "element": dtype}
    arrays, attributes = as_numpy(op, dtypes=dtypes)
    call = valid_call(op, dtypes=dtypes)
    tensors = {n: call.operands[n] and call.operands[n].torch().clone() for n in arrays}
    mine, theirs = (getattr(clover_ops, op.name)(**a, **attributes) for a in (arrays, tensors))
    mine, theirs = ([] if r is None else list(r) if isinstance(r, tuple) else [r] for r in (mine, theirs))
    assert all(isinstance(a, np.ndarray) for a in mine)
    for a, t in zip([*mine, *arrays.values()], [*theirs, *tensors.values()]):
        if a is not None:
            assert a.dtype.name == str(t.dtype).removeprefix("torch.")
            assert np.array_equal(a.reshape(-1).view(np.uint8), t.reshape(-1).view(torch.uint8).numpy())


@pytest.mark.parametrize("op", PURE, ids=lambda op: op.name)
def test_read_only_inputs_are_fine(op):
    arrays, attributes = as_numpy(op)
    for array in arrays.values():
        if array is not None:
            array.flags.writeable = False
    getattr(clover_ops, op.name)(**arrays, **attributes)


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_read_only_outputs_are_refused(op):
    for t in op.tensors:
        if not t.written:
            continue
        call = valid_call(op)
        arrays = {n: o.numpy().copy() for n, o in call.operands.items()}
        before, spoiled = {n: a.tobytes() for n, a in arrays.items()}, arrays[t.name]
        made = [arrays.pop(o.name) for o in op.tensors if o.role == "out"] if op.functional else []
        keywords = {"out": made[0] if len(made) == 1 else tuple(made)} if made else {}
        if op.workspace:
            need = getattr(clover_ops, f"{op.name}_workspace_size")(**arrays, **call.attributes)
            keywords["workspace"] = _aligned(need)
        spoiled.flags.writeable = False
        with pytest.raises(InvalidArgument, match=f"^{op.name}: {t.name} is written, but the array is read-only$"):
            getattr(clover_ops, op.name)(**arrays, **call.attributes, **keywords)
        assert all(arrays[n].tobytes() == before[n] for n in arrays)


def _aligned(size):
    memory = np.empty(size + 256, np.uint8)
    return memory[-memory.ctypes.data % 256 :][:size]


def test_strides_of_every_kind():
    base = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)
    views = [base, base[::2], base[:, ::-1], base[..., ::3], base.transpose(2, 0, 1), base[::-1, 1::2, ::-2], base[1]]
    views += [base[1, 2], base[1, 2, 3:4], base[:0], np.broadcast_to(base[0], (5, 6, 8)), np.asfortranarray(base)]
    for view in views:
        target = np.zeros(view.shape, np.float32)
        clover_ops.rearrange(view, target)
        assert np.array_equal(target, view)
        narrow = np.zeros(view.shape, BF16)
        clover_ops.cast(view, narrow[..., ::-1] if view.ndim else narrow)
        assert np.array_equal(narrow[..., ::-1], view.astype(BF16))


def test_negative_strides_as_output():
    base = np.zeros((4, 6), np.float32)
    source = np.arange(24, dtype=np.float32).reshape(4, 6)
    clover_ops.rearrange(source, base[::-1, ::-1])
    assert np.array_equal(base, source[::-1, ::-1])


def test_zero_dimensional():
    target = np.zeros((), np.float16)
    clover_ops.cast(np.array(1.5, np.float32), target)
    assert target == 1.5


def test_subclasses_and_views():
    class Mine(np.ndarray):
        pass

    source = np.arange(6, dtype=np.float32).view(Mine)
    target = np.zeros(6, np.float32).view(Mine)
    clover_ops.rearrange(source, target)
    assert np.array_equal(source, target)


X = np.ones((2, 1, 4), np.float32)


@pytest.mark.parametrize(
    "array, words",
    [
        (X.astype("f8"), "must be bfloat16 or float16 or float32, got float64"),
        (X.astype(">f4"), r"has NumPy dtype float32 \(>f4\), which no operator takes"),
        (X.astype("i4"), "must be bfloat16 or float16 or float32, got int32"),
        (X.astype("c8"), "got complex64"),
        (X.astype("O"), r"has NumPy dtype object \(\|O\), which no operator takes"),
        (X.astype("U4"), "which no operator takes"),
        (X.astype("M8[s]"), "which no operator takes"),
        (X.astype([("a", "f4")]), "which no operator takes"),
        (np.ones((2, 1, 4), "f2"), "they must have one dtype"),
        (np.lib.stride_tricks.as_strided(X, (2, 1, 2), (6, 4, 4)), r"has strides of \(6, 4, 4\) bytes"),
        (
            np.frombuffer(b"\0" * 33, np.uint8)[1:].view("f4").reshape(2, 1, 4),
            "is not aligned to its elements of 4 bytes",
        ),
        (np.float32(3.0), "must be a tensor|axes"),
    ],
    ids=lambda v: getattr(getattr(v, "dtype", None), "str", None),
)
def test_refused_as_x_and_as_z(array, words):
    weight = np.ones(4, np.float32)
    for name, x, z in (("x", array, X), ("z", X, array)):
        with pytest.raises((InvalidArgument, TypeError), match=rf"^rms_norm_gated: .*({words})") as refusal:
            clover_ops.rms_norm_gated(x, weight, z)
        assert name in str(refusal.value)


@pytest.mark.parametrize("dtype", [">i8", ">i4", "i2", "u4", "f4"])
def test_index_dtypes_that_are_none(dtype):
    q = np.ones((2, 1, 4), np.float32)
    with pytest.raises(InvalidArgument, match=r"^rotary_embedding: positions "):
        clover_ops.rotary_embedding(np.zeros(2, dtype), q, q.copy(), np.ones((3, 4), np.float32))


def test_int64_indices_of_any_stride():
    q, k = np.ones((3, 1, 4), np.float32), np.ones((3, 1, 4), np.float32)
    table = np.random.default_rng(0).random((6, 4), np.float32)
    positions = np.array([5, 9, 3, 9, 0], np.int64)[::2]
    q32, k32 = q.copy(), k.copy()
    clover_ops.rotary_embedding(positions, q, k, table)
    clover_ops.rotary_embedding(positions.astype(np.int32), q32, k32, table)
    assert np.array_equal(q, q32)
    assert np.array_equal(k, k32)
    assert list(positions) == [5, 3, 0]


def test_numpy_scalars_as_attributes():
    logits = np.random.default_rng(0).random((3, 5), np.float32)
    ids, weights = clover_ops.topk_softmax(logits, np.int64(2))
    again, same = clover_ops.topk_softmax(logits, 2)
    assert np.array_equal(ids, again)
    assert np.array_equal(weights, same)
    assert np.array_equal(
        clover_ops.rms_norm_gated(X, X[0, 0], X, np.float64(1e-6)), clover_ops.rms_norm_gated(X, X[0, 0], X)
    )


def test_torch_and_numpy_in_one_call():
    y = torch.zeros(2, 1, 4)
    clover_ops.rms_norm_gated(X, torch.ones(4), X, out=y)
    assert np.array_equal(y.numpy(), clover_ops.rms_norm_gated(X, np.ones(4, np.float32), X))
