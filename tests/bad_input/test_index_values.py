"""What index tensors may say: each rule broken once for every operator that has it, and random values against an oracle."""

import numpy as np
import pytest
from clover_ops import InvalidArgument
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from .calls import Operand, valid_call
from .refusal import Faults, refused
from .schema import OPERATORS

pytestmark = pytest.mark.smoke

SURFACES = ("torch", "functional", "numpy", "abi")
INDEXED = [(op, t) for op in OPERATORS for t in op.tensors if t.values]
PACKED = [op for op in OPERATORS if any(t.values == "cu_seqlens" for t in op.tensors)]
COMMITS = [op for op in OPERATORS if any(t.values == "final_slots" for t in op.tensors)]
LOW, HIGH = -(2**31), 2**31 - 1


def with_values(op, name, values, call=None, dtype="int32"):
    call = call or valid_call(op, N=3) if "N" in op.symbols else call or valid_call(op)
    operand = call.operands[name]
    call.operands[name] = Operand(dtype, operand.shape, np.array(values).reshape(operand.shape))
    return call


def limit(op, tensor, call):
    """The size that values must lie below, from the pools' shapes."""
    sizes = [o.shape[i] for name, o in call.operands.items() for i in range(len(o.shape))
             if op.tensor(name).shape and op.tensor(name).shape[i] in tensor.pools]  # fmt: skip
    return min(sizes)


def bad_values(op, tensor):
    """(values, where the first bad one is, words of the message)"""
    call = with_values(op, tensor.name, valid_call(op, N=3).operands[tensor.name].numpy() if "N" in op.symbols
                       else valid_call(op).operands[tensor.name].numpy())  # fmt: skip
    good = call.operands[tensor.name].numpy().copy()
    if tensor.values == "cu_seqlens":
        tokens = call.operands[op.tensors[0].name].shape[0]
        for values, position in (
            ([1, 2, 3, 5], 0), ([-1, 2, 3, 5], 0), ([0, 3, 2, 5], 2), ([0, 0, -1, 0], 2), ([0, 5, 5, 4], 3), ([0, 2, 3, 6], 3),
            ([0, 6, 6, 6], 3), ([0, 2, HIGH, HIGH], 3), ([LOW, 0, 0, 0], 0), ([0, LOW, 0, 0], 1), ([0, HIGH, LOW, 5], 2),
        ):  # fmt: skip
            assert tokens == 5
            yield values, (position,), str(values[position])
        return
    top = limit(op, tensor, call)
    lows = {"experts": (-2, LOW), "positions": (-1, LOW)}.get(tensor.values, ())
    for value in (top, top + 1, HIGH, *lows):
        for position in {0, good.size - 1}:
            values = good.copy()
            values.reshape(-1)[position] = value
            yield values, np.unravel_index(position, good.shape), str(value)


@pytest.mark.parametrize("op, tensor", INDEXED, ids=[f"{op.name}-{t.name}" for op, t in INDEXED])
@pytest.mark.parametrize("surface", SURFACES)
def test_each_bad_value(op, tensor, surface):
    faults = Faults()
    for values, position, got in bad_values(op, tensor):
        element = rf"{tensor.name}\[{', '.join(map(str, position))}\] must be"
        call = with_values(op, tensor.name, values)
        faults.check(f"{values} at {position}", refused, call, surface, element, f"got {got}")
    faults.done(4)


@pytest.mark.parametrize("op, tensor", INDEXED, ids=[f"{op.name}-{t.name}" for op, t in INDEXED])
@pytest.mark.parametrize("surface", ["torch", "functional", "numpy"])
def test_int64(op, tensor, surface):
    """int64 is converted; a value that int32 cannot hold is as wrong as any other, never a small one."""
    faults = Faults()
    good = with_values(
        op, tensor.name, valid_call(op, **({"N": 3} if "N" in op.symbols else {})).operands[tensor.name].numpy()
    )
    values = good.operands[tensor.name].numpy().astype(np.int64)
    faults.check("converted", with_values(op, tensor.name, values, dtype="int64").run, surface)
    for value in (2**32, 2**40, 2**32 + 1, 2**63 - 1, -(2**32), -(2**63)):
        wide = values.copy()
        wide.reshape(-1)[-1] = value
        call = with_values(op, tensor.name, wide, dtype="int64")
        if value < 0 and tensor.values in ("initial_slots", "final_slots"):
            faults.check(f"{value}", call.run, surface)  # negative: no slot
        else:
            faults.check(f"{value}", refused, call, surface, rf"{tensor.name}\[.*\] must be", "got")
    faults.done(7)


@pytest.mark.parametrize("op", COMMITS, ids=lambda op: op.name)
@pytest.mark.parametrize("surface", SURFACES)
def test_slot_conflicts(op, surface):
    faults = Faults()
    for initial, final, words in (
        ([0, 1, 2], [3, 4, 3], ("slot 3 is written by sequence 0 and written by sequence 2",)),
        ([0, 1, 2], [3, 0, 4], ("slot 0 is written by sequence 1 and read by sequence 0",)),
        ([0, 1, 2], [1, -1, -1], ("slot 1 is written by sequence 0 and read by sequence 1",)),
        ([-1, -1, -1], [2, 2, 2], ("slot 2 is written by sequence 0 and written by",)),
        ([4, 4, 4], [4, -1, -1], ("slot 4 is written by sequence 0 and read by",)),
    ):
        call = with_values(op, "cu_seqlens", [0, 2, 3, 5])
        call = with_values(op, "final_state_indices", final, with_values(op, "initial_state_indices", initial, call))
        faults.check(f"{initial} {final}", refused, call, surface, *words, "a written slot belongs to one sequence")
    for initial, final, lengths in (
        ([0, 0, 0], [-1, -1, -1], [0, 2, 3, 5]),  # read by all, written by none
        ([0, 1, 2], [0, 1, 2], [0, 2, 3, 5]),  # in place
        ([0, 1, 2], [1, 1, -1], [0, 0, 3, 3]),  # the first is empty with other slots: a write, see below
        ([0, 0, 1], [0, 2, 3], [0, 0, 3, 5]),  # the first is empty and in place: it touches nothing
        ([0, 0, 1], [-1, 0, 3], [0, 0, 3, 5]),  # the first is empty and discards: it reads nothing
    ):
        call = with_values(op, "cu_seqlens", lengths)
        call = with_values(op, "final_state_indices", final, with_values(op, "initial_state_indices", initial, call))
        if legal(lengths, initial, final, 5, 5):
            faults.check(f"{initial} {final} {lengths}", call.run, surface)
        else:
            faults.check(f"{initial} {final} {lengths}", refused, call, surface, "slot 1 is written by")
    faults.done(10)


def legal(cu_seqlens, initial, final, tokens, slots):
    """OPERATORS.md's rules, written down once more."""
    if cu_seqlens[0] != 0 or list(cu_seqlens) != sorted(cu_seqlens) or cu_seqlens[-1] > tokens:
        return False
    if any(slot >= slots for slot in (*initial, *(final or ()))):
        return False
    if final is None:
        return True
    reads, writes = [], []
    for i, (a, b) in enumerate(zip(initial, final)):
        if cu_seqlens[i] == cu_seqlens[i + 1] and (a == b or b < 0):
            continue
        reads += [(i, a)] if a >= 0 else []
        writes += [(i, b)] if b >= 0 else []
    return not any(slot == other and i != j for i, slot in writes for j, other in (*reads, *writes))


SLOTS = 5
RANDOM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def sequences(draw):
    count, tokens = draw(st.integers(0, 4)), draw(st.integers(0, 7))
    ends = sorted(draw(st.lists(st.integers(0, tokens), min_size=count, max_size=count)))
    cu_seqlens = [0, *ends]
    if draw(st.integers(0, 4)) == 0:  # spoil one
        cu_seqlens[draw(st.integers(0, count))] = draw(st.integers(-2, tokens + 2))
    slot = st.integers(-2, SLOTS - 1) if draw(st.integers(0, 9)) else st.integers(-2, SLOTS)
    lists = st.lists(slot, min_size=count, max_size=count)
    return tokens, cu_seqlens, draw(lists), draw(lists)


@pytest.mark.parametrize("op", PACKED, ids=lambda op: op.name)
def test_random_sequences_against_the_oracle(op):
    verdicts = []

    @RANDOM
    @given(sequences())
    def check(case):
        tokens, cu_seqlens, initial, final = case
        pools = {name: SLOTS for name in ("S", "SC") if name in op.symbols}
        call = valid_call(op, seed=tokens % 2, T=tokens, N=len(initial), **pools)
        call = with_values(op, "cu_seqlens", cu_seqlens, call)
        names = {t.values: t.name for t in op.tensors}
        if "initial_slots" in names:
            call = with_values(op, names["initial_slots"], initial, call)
        if "final_slots" in names:
            call = with_values(op, names["final_slots"], final, call)
        used = (initial if "initial_slots" in names else (), final if "final_slots" in names else None)
        good = legal(cu_seqlens, *used, tokens, SLOTS)
        verdicts.append(good)
        if good:
            call.run("abi")
        else:
            with pytest.raises(InvalidArgument, match=f"^{op.name}: "):
                call.run("abi")

    check()
    assert 0.1 < np.mean(verdicts) < 0.95


@pytest.mark.parametrize("op, tensor", [(o, t) for o, t in INDEXED if t.values in ("experts", "positions")],
                         ids=lambda x: x.name)  # fmt: skip
def test_random_values_against_the_oracle(op, tensor):
    lowest = {"experts": -1, "positions": 0}[tensor.values]

    @RANDOM
    @given(st.data())
    def check(data):
        call = valid_call(op)
        shape, top = call.operands[tensor.name].shape, limit(op, tensor, call)
        wide = data.draw(st.booleans())
        value = st.integers(lowest - wide, top - 1 + wide)
        count = int(np.prod(shape))
        values = data.draw(st.lists(value, min_size=count, max_size=count))
        assume(values)
        call = with_values(op, tensor.name, values, call)
        if all(lowest <= v < top for v in values):
            call.run("abi")
        else:
            with pytest.raises(InvalidArgument, match=rf"^{op.name}: {tensor.name}\["):
                call.run("abi")

    check()


@pytest.mark.parametrize("op", COMMITS, ids=lambda op: op.name)
def test_many_sequences(op):
    """More sequences than the checker keeps on its stack."""
    count = 700
    call = valid_call(op, T=count, N=count, S=count + 1)
    call = with_values(op, "cu_seqlens", range(count + 1), call)
    call = with_values(op, "initial_state_indices", range(count), call)
    call = with_values(op, "final_state_indices", range(count), call)
    call.run("abi")
    finals = list(range(count))
    finals[650] = 13
    call = with_values(op, "final_state_indices", finals, call)
    refused(call, "abi", "slot 13 is written by sequence 13 and written by sequence 650")
    finals[650], finals[13] = count, 650
    call = with_values(op, "final_state_indices", finals, call)
    refused(call, "abi", "slot 650 is written by sequence 13 and read by sequence 650")
