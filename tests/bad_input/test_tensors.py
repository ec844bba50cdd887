"""Every tensor of every operator with every fault that one tensor can have, generated from the schema."""

import math

import numpy as np
import pytest
import torch
from clover_ops import Unsupported

from .calls import CUDA, DTYPES, ROCM, Operand, Raw, contiguous, valid_call
from .refusal import Faults, refused
from .schema import OPERATORS, consistent

pytestmark = pytest.mark.smoke

SURFACES = ("torch", "functional", "numpy", "abi")
IDS = [op.name for op in OPERATORS]
BIG = 2**62


def each_operator(function):
    return pytest.mark.parametrize("op", OPERATORS, ids=IDS)(function)


def tensors_of(op, surface):
    """The functional form has no outputs to spoil."""
    return [t for t in op.tensors if surface != "functional" or t.role != "out" or not op.functional]


def spoiled(op, name, make, **options):
    """A valid call with one operand replaced by make(operand)."""
    call = valid_call(op, **options)
    call.operands[name] = make(call.operands[name])
    return call


@each_operator
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("full", [True, False], ids=["full", "least"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_valid_call(op, surface, full, dtype):
    valid_call(op, full, {"X": dtype, "Y": dtype, "element": dtype}).run(surface)


@each_operator
@pytest.mark.parametrize("surface", SURFACES)
def test_rank(op, surface):
    faults = Faults()
    for t in tensors_of(op, surface):
        shape = valid_call(op).operands[t.name].shape
        for other in (shape[1:], (1, *shape), (*shape, 1), (), (1,) * 7):
            if t.shape is None and len(other) <= 6:
                words = () if t.role == "in" else ("src", "dst")  # legal by itself, but not beside the other's shape
            elif len(other) == len(shape):
                continue
            else:
                words = (t.name, "axes", f"got {len(other)}:")
            call = spoiled(op, t.name, lambda o, s=other: o.like(shape=s))
            faults.check(f"{t.name} {other}", refused, call, surface, *(w.rstrip(":") for w in words))
    faults.done()


@each_operator
@pytest.mark.parametrize("surface", SURFACES)
def test_each_axis_off_by_one(op, surface):
    faults = Faults()
    for t in tensors_of(op, surface):
        shape = valid_call(op).operands[t.name].shape
        for axis in range(len(shape)):
            for length in (shape[axis] - 1, shape[axis] + 1):
                call = spoiled(op, t.name, lambda o, s=(*shape[:axis], length, *shape[axis + 1 :]): o.like(shape=s))
                # What the functional form makes always fits; pools that shrink take slots with them.
                own = surface == "functional" and op.functional
                shapes = {n: s for n, s in call.shapes.items() if not own or op.tensor(n).role != "out"}
                label = f"{t.name} {shape} -> axis {axis} = {length}"
                if not consistent(op, shapes, call.attributes):
                    symbol = t.symbol(axis) if t.shape else None
                    names = "|".join(filter(None, (t.name, symbol)))
                    faults.check(label, refused, call, surface, f"({names})", "got")
                elif length > shape[axis]:
                    faults.check(label, call.run, surface)
    faults.done()


def _wrong_dtypes(op, t, call, surface):
    """Each dtype that the tensor may not have, alone or beside the others that share its type."""
    now = call.operands[t.name].dtype
    fellows = [o for o in op.tensors if o.dtype == t.dtype and o.name != t.name and call.operands[o.name] is not None]
    if surface == "functional":
        fellows = [o for o in fellows if o.role != "out" or not op.functional]
    for dtype in DTYPES:
        converted = dtype == "int64" and t.dtype == "int32" and t.role == "in" and surface != "abi"
        if dtype == now or converted:
            continue
        if dtype not in t.dtypes:
            yield dtype, "must be" if t.dtype != "element" else "dtype"
        elif fellows:
            yield dtype, "they must have one dtype"


@each_operator
@pytest.mark.parametrize("surface", SURFACES)
def test_dtype(op, surface):
    faults = Faults()
    for t in tensors_of(op, surface):
        for dtype, words in _wrong_dtypes(op, t, valid_call(op), surface):
            call = spoiled(op, t.name, lambda o, d=dtype: o.like(dtype=d))
            faults.check(f"{t.name} {dtype}", refused, call, surface, "|".join((t.name, "src")), words, dtype)
    faults.done()


@each_operator
def test_codes_that_are_no_dtype(op):
    faults = Faults()
    for t in op.tensors:
        for edits in ({"lanes": 4}, {"lanes": 0}, {"bits": 12}, {"bits": 0}, {"bits": 128}, {"code": 3, "bits": 24}):
            call = valid_call(op)
            call.operands[t.name].edits = edits
            faults.check(f"{t.name} {edits}", refused, call, "abi", t.name, "must be", "got")
    faults.done()


@each_operator
@pytest.mark.parametrize("surface", ["torch", "functional"])
def test_meta_device(op, surface):
    faults = Faults()
    for t in tensors_of(op, surface):
        call = valid_call(op)
        operand = call.operands[t.name]
        operand.torch = lambda o=operand: torch.empty(o.shape, dtype=getattr(torch, o.dtype), device="meta")
        faults.check(t.name, refused, call, surface, t.name, "meta")
    faults.done()


@each_operator
def test_other_device(op):
    faults = Faults()
    first = op.tensors[0].name
    for t in op.tensors:
        for device_type, device_id, text in ((CUDA, 0, "cuda:0"), (CUDA, 3, "cuda:3"), (ROCM, 0, "rocm:0"), (1, 2, "cpu:2"),
                                             (77, 0, "device.77.:0")):  # fmt: skip
            call = valid_call(op)
            call.operands[t.name].edits = {"device_type": device_type, "device_id": device_id}
            words = ("all tensors must share one device", text, "cpu", first)
            faults.check(f"{t.name} {text}", refused, call, "abi", *words)
    faults.done()


@each_operator
def test_all_on_a_device_without_backend(op):
    call = valid_call(op)
    for operand in call.operands.values():
        operand.edits = {"device_type": 77, "device_id": 1}
    refused(call, "abi", "no active backend provides it on", r"device\(77\):1", "provided by", "cpu", kind=Unsupported)


def _strided(operand, strides):
    return Operand(operand.dtype, operand.shape, operand.numpy(), strides)


def _doubled(shape):
    """Strides with a gap behind every element."""
    return tuple(2 * s for s in contiguous(shape))


def _swapped(shape):
    """Contiguous but for the last two axes, which are exchanged in memory."""
    inner = contiguous((*shape[:-2], shape[-1], shape[-2]))
    return (*inner[:-2], inner[-1], inner[-2])


@each_operator
@pytest.mark.parametrize("surface", ["torch", "numpy", "abi"])
def test_strides(op, surface):
    """The last axis has a unit stride, where the schema does not say otherwise; rows may have any."""
    faults = Faults()
    for t in op.tensors:
        shape = valid_call(op).operands[t.name].shape
        doubled = spoiled(op, t.name, lambda o, s=shape: _strided(o, _doubled(s)))
        if t.strides == "any" or shape[-1] < 2:
            faults.check(f"{t.name} doubled", doubled.run, surface)
        else:
            faults.check(f"{t.name} doubled", refused, doubled, surface, t.name, "must have unit stride", "got strides")
        rows = tuple(s + 3 if i < len(shape) - 1 else s for i, s in enumerate(contiguous(shape)))
        if len(shape) > 1:
            wide = tuple(max(4, r) * 2 if i < len(shape) - 1 else r for i, r in enumerate(rows))
            call = spoiled(op, t.name, lambda o, s=wide: _strided(o, _nested(s, o.shape)))
            faults.check(f"{t.name} gapped", call.run, surface)
        if len(shape) > 1 and min(shape[-2:]) > 1:
            call = spoiled(op, t.name, lambda o, s=shape: _strided(o, _swapped(s)))
            if t.strides == "last":
                faults.check(
                    f"{t.name} swapped", refused, call, surface, t.name, "must have unit stride", "got strides"
                )
            else:
                faults.check(f"{t.name} swapped", call.run, surface)
    faults.done()


def _nested(wanted, shape):
    """Strides at least as wide as wanted, each stepping over all that is inside."""
    strides, inside = [0] * len(shape), 1
    for i in range(len(shape) - 1, -1, -1):
        strides[i] = max(wanted[i], inside) if i < len(shape) - 1 else 1
        inside = strides[i] * max(shape[i], 1)
    return tuple(strides)


@each_operator
def test_reversed_tensors(op):
    """Negative strides: legal where any stride is, refused where the last axis must have a unit stride."""
    faults = Faults()
    for t in op.tensors:
        shape = valid_call(op).operands[t.name].shape
        reversed_ = spoiled(op, t.name, lambda o, s=shape: _strided(o, tuple(-x for x in contiguous(s))))
        for surface in ("numpy", "abi"):
            if t.strides == "any" or shape[-1] < 2:
                faults.check(f"{t.name} {surface}", reversed_.run, surface)
            else:
                faults.check(f"{t.name} {surface}", refused, reversed_, surface, t.name, "must have unit stride")
        if len(shape) > 1:  # rows backwards
            strides = (-contiguous(shape)[0], *contiguous(shape)[1:])
            rows = spoiled(op, t.name, lambda o, s=strides: _strided(o, s))
            faults.check(f"{t.name} rows", rows.run, "numpy")
    faults.done()


@each_operator
@pytest.mark.parametrize("surface", ["torch", "numpy", "abi"])
def test_written_tensor_overlaps_itself(op, surface):
    faults = Faults()
    for t in op.tensors:
        if not t.written:
            continue
        operand = valid_call(op).operands[t.name]
        for axis in range(len(operand.shape) - (t.strides == "last")):
            for strides in (_with(operand.strides, axis, 0), _with(operand.strides, axis, 1)):
                if operand.shape[axis] < 2 or (strides[axis] == 1 and math.prod(operand.shape[axis + 1 :]) == 1):
                    continue
                call = spoiled(op, t.name, lambda o, s=strides: Operand(o.dtype, o.shape, strides=s))
                words = (t.name, "is written but overlaps itself", "strides")
                if t.strides == "matrix" and strides[-1] != 1 and strides[-2] != 1:
                    words = (t.name, "must have unit stride")
                faults.check(f"{t.name} strides {strides}", refused, call, surface, *words)
    faults.done(0 if op.name in ("live_row_routes",) else 1)


def _with(strides, axis, value):
    return (*strides[:axis], value, *strides[axis + 1 :])


@each_operator
@pytest.mark.parametrize("surface", ["torch", "numpy", "abi"])
def test_written_tensor_overlaps_another(op, surface):
    """Each pair of a written tensor and another one, which share their first or last bytes."""
    faults = Faults()
    for t in op.tensors:
        for other in op.tensors:
            if not t.written or other.name == t.name:
                continue
            for end in (False, True):
                call = valid_call(op)
                _share_memory(call, t.name, other.name, end)
                words = (t.name, other.name, "is written but overlaps")
                faults.check(f"{other.name} in {t.name}", refused, call, surface, *words)
    faults.done(2)


def _share_memory(call, host, guest, end):
    """Puts the guest's first element on the host's first or last bytes, in an arena that holds both."""
    a, b = call.operands[host], call.operands[guest]
    length = a.arena.size + b.arena.size + 128
    memory = np.full(length + 128, 0xA5, np.uint8)
    arena = memory[-memory.ctypes.data % 128 :][: length - length % 128]
    start = a.offset * a.item
    arena[: a.arena.size] = a.arena
    a_last = start + (math.prod(a.shape) - 1) * a.item
    at = a_last - a_last % b.item if end else start
    values = b.numpy().copy()
    a.arena = b.arena = arena
    b.offset = at // b.item
    b.numpy()[...] = values


@each_operator
def test_data(op):
    faults = Faults()
    for t in op.tensors:
        item = valid_call(op).operands[t.name].item
        for label, edit, word in (
            ("null", lambda s: {"data": None}, "has elements but its data is null"),
            ("misaligned", lambda s: {"data": s.data + 1}, "is not aligned to its elements of"),
            ("odd offset", lambda s: {"byte_offset": 1}, "is not aligned to its elements of"),
            ("huge offset", lambda s: {"byte_offset": 2**63}, "reaches outside the address space"),
            ("wrapping offset", lambda s: {"byte_offset": 2**64 - 64}, "reaches outside the address space"),
            ("end of memory", lambda s: {"data": 2**64 - 64}, "reaches outside the address space"),
        ):
            if item == 1 and "aligned" in word:
                continue
            call = valid_call(op)
            call.operands[t.name].edits = edit(call.operands[t.name].struct())
            faults.check(f"{t.name} {label}", refused, call, "abi", t.name, word)
        call = valid_call(op)
        data = call.operands[t.name].struct().data
        call.operands[t.name].edits = {"data": data - 16, "byte_offset": 16}
        faults.check(f"{t.name} with an offset", call.run, "abi")
    faults.done()


@each_operator
def test_absurd_shapes_and_strides(op):
    faults = Faults()
    for t in op.tensors:
        operand = valid_call(op).operands[t.name]
        rank, shape, strides = len(operand.shape), list(operand.shape), list(operand.strides)
        for label, edits, word in (
            ("ndim -1", {"ndim": -1}, "malformed"),
            ("ndim 65", {"ndim": 65}, "malformed"),
            ("ndim max", {"ndim": 2**31 - 1}, "malformed"),
            ("no shape", {"shape": None}, "malformed"),
            *((f"size -1 at {i}", {"shape": _with(shape, i, -1)}, "has a negative size") for i in range(rank)),
            *((f"size min at {i}", {"shape": _with(shape, i, -(2**63))}, "has a negative size") for i in range(rank)),
            *((f"size {n} at {i}", {"shape": _with(shape, i, n)}, ".*") for i in range(rank) for n in (2**31, BIG, 2**63 - 1)),
            *((f"stride {n} at {i}", {"strides": _with(strides, i, n)}, "(reaches outside the address space|unit stride)")
              for i in range(rank) for n in (BIG, -BIG, 2**63 - 1, -(2**63)) if shape[i] > 1),
            ("sizes whose product wraps", {"shape": [BIG] * rank, "strides": [0] * (rank - 1) + [1]}, ".*"),
            ("bytes that wrap", {"shape": [BIG + 1] * rank, "strides": [BIG] * rank}, ".*"),
        ):  # fmt: skip
            call = valid_call(op)
            call.operands[t.name].edits = edits
            if label.startswith("size") and _explained(call, t.name, edits["shape"]):
                continue  # a pool may be as large as it says; only slots that are named are read
            faults.check(f"{t.name} {label}", refused, call, "abi", word)
    faults.done()


def _explained(call, name, shape):
    shapes = {**call.shapes, name: tuple(shape)}
    return max(shape) < 2**40 and consistent(call.op, shapes, call.attributes)


@each_operator
def test_every_tensor_absurd_in_the_same_way(op):
    """Shapes that agree with each other, so that only their size is wrong."""
    faults = Faults()
    for dtype in ("float32", "bfloat16"):
        for value in (2**31, 2**40, BIG, BIG + 1):
            for stride in (0, 1, BIG):
                call = valid_call(op, dtypes={"X": dtype, "Y": dtype, "element": "int64"})
                for operand in call.operands.values():
                    rank = len(operand.shape)
                    operand.edits = {"shape": [value] * rank, "strides": [stride] * (rank - 1) + [1]}
                faults.check(f"{dtype} {value} {stride}", refused, call, "abi")
    faults.done()


@each_operator
def test_strides_may_be_left_out(op):
    call = valid_call(op)
    for operand in call.operands.values():
        operand.edits = {"strides": None}
    call.run("abi")


@each_operator
def test_axes_of_size_one_may_have_any_stride(op):
    faults = Faults()
    for t in op.tensors:
        symbols = {} if t.shape is None else {t.symbol(0): 1} if t.symbol(0) in ("T", "E", "HV", "P") else None
        if symbols is None:
            continue
        call = valid_call(op, any_shape=(1, 1, 4), **symbols) if _possible(op, symbols) else None
        if call is None:
            continue
        operand = call.operands[t.name]
        for stride in (0, BIG, -7):
            strides = [stride if n == 1 else s for n, s in zip(operand.shape, operand.strides)]
            operand.edits = {"strides": strides}
            faults.check(f"{t.name} {stride}", call.run, "abi")
    faults.done()


def _possible(op, symbols):
    try:
        valid_call(op, **symbols)
    except LookupError:
        return False
    return True


@each_operator
@pytest.mark.parametrize("surface", ["torch", "abi"])
def test_missing_tensor(op, surface):
    faults = Faults()
    for t in op.tensors:
        call = valid_call(op)
        call.operands[t.name] = None
        needed_by = {a for a, b in op.needs if b == t.name} | {a for g in op.together if t.name in g for a in g} - {
            t.name
        }
        if t.optional and not needed_by:
            faults.check(t.name, call.run, surface)
        elif t.optional:
            faults.check(t.name, refused, call, surface, t.name, "was given without")
        elif surface == "torch" and t.role == "out" and op.functional and len(_outputs(op)) == 1:
            call.run(surface)  # out=None: the functional form
        else:
            faults.check(t.name, refused, call, surface, t.name, "is missing")
    faults.done()


def _outputs(op):
    return [t for t in op.tensors if t.role == "out"]


@pytest.mark.parametrize("op", [op for op in OPERATORS if op.together or op.needs], ids=lambda op: op.name)
@pytest.mark.parametrize("surface", ["torch", "abi"])
def test_tensors_that_come_together(op, surface):
    """Every subset of the optional tensors: legal exactly when each group is whole and each need is met."""
    optional = [t.name for t in op.tensors if t.optional]
    faults = Faults()
    for bits in range(2 ** len(optional)):
        given = {name for i, name in enumerate(optional) if bits >> i & 1}
        call = valid_call(op)
        for name in set(optional) - given:
            call.operands[name] = None
        good = all(given.issuperset(g) or given.isdisjoint(g) for g in op.together)
        good &= all(a not in given or b in given for a, b in op.needs)
        if good:
            faults.check(f"{sorted(given)}", call.run, surface)
        else:
            faults.check(f"{sorted(given)}", refused, call, surface, "was given without", "which it needs")
    faults.done(4)


@each_operator
@pytest.mark.parametrize("value", [3, "text", [1.0], object, {"a": 1}], ids=str)
def test_things_that_are_no_tensors(op, value):
    faults = Faults()
    for t in op.tensors:
        call = spoiled(op, t.name, lambda _: Raw(value))
        faults.check(t.name, refused, call, "torch", t.name, "must be a tensor", "got", kind=TypeError)
    faults.done()
