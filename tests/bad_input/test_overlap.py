"""Whether tensors share memory is decided exactly: against a count of the bytes of random strided pairs."""

import ctypes
from itertools import product

import clover_ops
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from .calls import DTYPES, CTensor, valid_call
from .schema import OPERATORS

pytestmark = pytest.mark.smoke

COPY, CAST = (next(op for op in OPERATORS if op.name == name) for name in ("rearrange", "cast"))
EXACT = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
ARENA = 1 << 14


def elements(shape, strides, item, offset):
    """The byte ranges of each element, relative to the arena."""
    return [offset + item * sum(i * s for i, s in zip(index, strides)) for index in product(*map(range, shape))]


def overlap(shape, first, second):
    (a_strides, a_item, a_offset), (b_strides, b_item, b_offset) = first, second
    a = {e + k for e in elements(shape, a_strides, a_item, a_offset) for k in range(a_item)}
    b = {e + k for e in elements(shape, b_strides, b_item, b_offset) for k in range(b_item)}
    return bool(a & b)


def overlaps_itself(shape, strides, item, offset):
    places = elements(shape, strides, item, offset)
    return len(set(places)) < len(places)


def run_in_one_arena(op, dtypes, shape, strides, offsets):
    """The refusal's message, or None after the call ran; the result is then compared too."""
    arena = np.arange(ARENA, dtype=np.uint64).view(np.uint8)[:ARENA].copy()
    arena[:] = np.resize(np.arange(251, dtype=np.uint8), ARENA) & 0x3F  # finite as any float
    call = valid_call(op, any_shape=shape, dtypes={"X": dtypes[0], "Y": dtypes[1], "element": dtypes[0]})
    views = []
    for operand, dtype, stride, offset in zip(call.operands.values(), dtypes, strides, offsets):
        item = DTYPES[dtype][0].itemsize
        operand.edits = {"data": arena.ctypes.data + offset, "strides": stride}
        views.append(np.ndarray(shape, DTYPES[dtype][0], arena.data, offset, tuple(s * item for s in stride)))
    expected = views[0].astype(views[1].dtype)
    before = arena.copy()
    try:
        call.abi().run()
    except clover_ops.InvalidArgument as error:
        assert np.array_equal(arena, before)
        return str(error)
    assert np.array_equal(views[1].tobytes(), expected.tobytes())
    return None


@st.composite
def pairs(draw):
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    stride = st.one_of(st.integers(-9, 9), st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 48, -16, -24]))
    strides = [tuple(draw(st.lists(stride, min_size=rank, max_size=rank))) for _ in range(2)]
    if draw(st.booleans()):  # the same layout, shifted: interleaved or the same
        strides[1] = strides[0]
    return shape, strides, draw(st.integers(-40, 40))


def check_pair(op, dtypes, case):
    shape, strides, shift = case
    items = [DTYPES[dtype][0].itemsize for dtype in dtypes]
    middle = ARENA // 2
    offsets = (middle, middle + shift * items[1])
    source, target = ((s, i, o) for s, i, o in zip(strides, items, offsets))
    message = run_in_one_arena(op, dtypes, shape, strides, offsets)
    if overlaps_itself(shape, *target):
        assert message and "dst is written but overlaps itself" in message, (case, message)
    elif overlap(shape, source, target):
        assert message and "dst is written but overlaps src" in message, (case, message)
    else:
        assert message is None, (case, message)
    return message


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "int64"])
def test_copies_in_one_buffer(dtype):
    answers = []

    @EXACT
    @given(pairs())
    @example(((2, 3), [(6, 2), (6, 2)], 1))
    @example(((4, 4), [(16, 2), (16, 2)], 1))
    @example(((3,), [(1,), (-1,)], 3))
    def check(case):
        answers.append(check_pair(COPY, (dtype, dtype), case))

    check()
    good = sum(answer is None for answer in answers)
    assert good > 20
    assert len(answers) - good > 20


@pytest.mark.parametrize("dtypes", [("float32", "bfloat16"), ("float16", "float32")], ids="-".join)
def test_casts_in_one_buffer(dtypes):
    """Elements of two sizes: they may meet in half an element."""

    @EXACT
    @given(pairs())
    def check(case):
        check_pair(CAST, dtypes, case)

    check()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-30, 30)), min_size=1, max_size=6))
def test_self_overlap(axes):
    shape, strides = zip(*axes)
    if np.prod(shape) > 2000:
        return
    call = valid_call(COPY, any_shape=shape, dtypes={"element": "int16"})
    memory = np.zeros(1 << 13, np.int16)
    call.operands["dst"].edits = {"data": memory.ctypes.data + memory.size, "strides": strides}
    try:
        call.abi().run()
        accepted = True
    except clover_ops.InvalidArgument as error:
        assert "dst is written but overlaps itself" in str(error)
        accepted = False
    assert accepted != overlaps_itself(shape, strides, 2, 0)


def test_a_contrived_layout_is_refused_rather_than_searched_for_ever():
    """Six axes with coprime strides: where the search gives up, it says that they may overlap."""
    shape = (90,) * 6
    strides = (1009, 2003, 3001, 4001, 5003, 6007)
    structs = []
    for base in (1 << 20, (1 << 20) + 1):
        tensor = CTensor(base, 1, 0, 6, 0, 8, 1)
        tensor.shape, tensor.strides = (ctypes.c_int64 * 6)(*shape), (ctypes.c_int64 * 6)(*strides)
        structs.append(tensor)
    abi = valid_call(COPY, dtypes={"element": "int8"}).abi()
    for name, struct in zip(("src", "dst"), structs):
        setattr(abi.args, name, ctypes.pointer(struct))
    with pytest.raises(clover_ops.InvalidArgument, match=r"dst is written but overlaps itself"):
        abi.run()


# --- views of one projection, as an engine makes them ------------------------------------------------------------


def _rotary(q, k):
    positions = torch.arange(q.shape[0], dtype=torch.int32)
    angle = torch.rand(q.shape[0], 4)
    clover_ops.rotary_embedding(positions, q, k, torch.cat([angle.cos(), angle.sin()], 1))


def _views(name, tokens=5, heads=4, kv=2, dim=8):
    if name == "side by side":
        projection = torch.randn(tokens, (heads + 2 * kv) * dim)
        q, k, _ = projection.split([heads * dim, kv * dim, kv * dim], 1)
        return projection, q.view(tokens, heads, dim), k.view(tokens, kv, dim)
    if name == "head by head":
        projection = torch.randn(tokens, kv, heads // kv + 2, dim)
        return projection, projection[:, :, 0], projection[:, :, 1]
    if name == "token by token":
        projection = torch.randn(2 * tokens, heads, dim)
        return projection, projection[0::2], projection[1::2]
    projection = torch.randn(heads, tokens, 2 * dim)
    return projection, projection[..., :dim].transpose(0, 1), projection[..., dim:].transpose(0, 1)


@pytest.mark.parametrize("name", ["side by side", "head by head", "token by token", "heads first"])
def test_interleaved_views_of_one_projection_are_accepted(name):
    torch.manual_seed(3)
    projection, q, k = _views(name)
    torch.manual_seed(3)
    _, q_alone, k_alone = _views(name)
    q_alone, k_alone = q_alone.clone(), k_alone.clone()
    torch.manual_seed(4)
    _rotary(q, k)
    torch.manual_seed(4)
    _rotary(q_alone, k_alone)
    assert torch.equal(q, q_alone)
    assert torch.equal(k, k_alone)
    assert projection.isfinite().all()


def test_views_that_share_an_element_are_refused():
    projection = torch.randn(5, 6, 8)
    with pytest.raises(clover_ops.InvalidArgument, match=r"^rotary_embedding: q is written but overlaps k"):
        _rotary(projection[:, :4], projection[:, 3:])
