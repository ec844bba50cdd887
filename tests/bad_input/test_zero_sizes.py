"""Calls in which some size is zero: legal unless a condition of the schema says otherwise, and then nothing happens."""

from itertools import combinations

import pytest

from .calls import valid_call
from .refusal import Faults
from .schema import OPERATORS

pytestmark = pytest.mark.smoke

IDS = [op.name for op in OPERATORS]


def zeros(op):
    """Sets of symbols that may be zero together."""
    needs_a_choice = {a.name for a in op.attributes if a.min}
    names = [name for name in op.symbols if name not in needs_a_choice]
    for count in (1, 2, len(names)):
        for chosen in combinations(names, count):
            fixed = dict.fromkeys(chosen, 0)
            if "P" in fixed and "T" not in fixed:
                fixed["T"] = 0  # no position lies in an empty table
            try:
                valid_call(op, **fixed)
            except LookupError:
                continue
            yield fixed


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
@pytest.mark.parametrize("surface", ["torch", "functional", "numpy", "abi"])
def test_empty_axes(op, surface):
    faults = Faults()
    for fixed in zeros(op):
        for full in (True, False):
            faults.check(f"{fixed} full={full}", valid_call(op, full, **fixed).run, surface)
    faults.done(0 if op.tensors[0].shape is None else 2)


@pytest.mark.parametrize("op", [o for o in OPERATORS if o.tensors[0].shape is None], ids=lambda op: op.name)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (3, 0, 2), (2, 3, 4, 0), (1,) * 6, (0,) * 6], ids=str)
@pytest.mark.parametrize("surface", ["torch", "numpy", "abi"])
def test_any_rank(op, shape, surface):
    valid_call(op, any_shape=shape).run(surface)


@pytest.mark.parametrize("op", [o for o in OPERATORS if "T" in o.symbols], ids=lambda op: op.name)
def test_no_tokens_with_null_data(op):
    """Frameworks give empty tensors a null pointer."""
    call = valid_call(op, T=0, **({"N": 0} if "N" in op.symbols else {}))
    for operand in call.operands.values():
        if 0 in operand.shape:
            operand.edits = {"data": None}
    call.run("abi")


@pytest.mark.parametrize("op", [o for o in OPERATORS if "KC" in o.symbols], ids=lambda op: op.name)
@pytest.mark.parametrize("surface", ["torch", "functional", "abi"])
def test_a_filter_of_one_tap_has_an_empty_state(op, surface):
    valid_call(op, KC=1).run(surface)


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_axes_of_one(op):
    faults = Faults()
    for name in op.symbols:
        try:
            call = valid_call(op, **{name: 1})
        except LookupError:
            continue
        faults.check(name, call.run, "abi")
    faults.done(0)
