"""Runs one case on one provider: functional form, `out=` form, repeat; see `run` for what is checked in each."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from . import checks, harness
from .arena import DENSE, Layout, Operand, Stage, aligned_workspace, bits, check_around, poison, to_numpy


@dataclass(frozen=True)
class Result:
    """An output of the call. Rows from `owned` on belong to no sequence."""

    shape: tuple[int, ...]
    dtype: np.dtype
    owned: int | None = None
    absent: int = 0
    layout: Layout = DENSE


@dataclass
class Notes:
    """What a comparison had to leave open."""

    near_ties: int = 0
    other_choices: int = 0


@dataclass(frozen=True)
class Problem:
    """A call with everything known about its right answer."""

    operator: str
    arguments: dict[str, object]
    """In the order of the operator page: operands, None for an absent tensor, and plain attributes."""
    outputs: dict[str, Result]
    verify: Callable[[dict[str, np.ndarray], Notes], None]
    """Compares outputs and mutated arguments, by name, with the reference."""
    may_refuse: str = "never"
    """`never`, `always`, or `off-cpu`: whether a provider may say clearly that it does not take these shapes."""
    operands: dict[str, Operand] = field(init=False)

    def __post_init__(self):
        operands = {name: value for name, value in self.arguments.items() if isinstance(value, Operand)}
        object.__setattr__(self, "operands", operands)


def run(problem, target):
    """Three calls, each on fresh copies of what it may write. After each one const tensors, gaps and margins have their
    old bits, values are right, rows of no sequence are zero (functional) or untouched (`out=`); the last two calls,
    which are the same, agree bit for bit in every buffer."""
    call = Call(problem, target)
    values = _unless_refused(call, call.functional)
    notes = Notes()
    problem.verify(values, notes)

    values, first = _unless_refused(call, call.out_form)
    problem.verify(values, Notes())
    _, second = call.out_form()
    for name, buffer in first.items():
        assert np.array_equal(buffer, second[name]), f"{name}: a repeat of the same call gave other bits"
    return notes


class Call:
    """A problem on one provider's device. Const tensors are placed once, the others anew for every call."""

    def __init__(self, problem, target):
        self.problem, self.target = problem, target
        mixed = {_slab_of(name, operand) for name, operand in problem.operands.items() if operand.mutable}
        self._fresh = {name: o for name, o in problem.operands.items() if _slab_of(name, o) in mixed}
        constants = {name: o for name, o in problem.operands.items() if name not in self._fresh}
        self._constants = Stage(constants, target.torch_device)

    def functional(self, automatic=False):
        """The outputs and the mutated arguments, by name."""
        mutables = self._stage_mutables()
        slot = None if automatic else self.target.slot
        tensors = harness.call_functional(self.problem.operator, self._arguments(mutables), slot)
        self._check_untouched(mutables)
        results = self.problem.outputs
        assert len(tensors) == len(results), f"{len(tensors)} outputs, expected {len(results)}"
        values = {}
        for (name, result), tensor in zip(results.items(), tensors):
            assert tensor.device.type == self.target.torch_device, f"{name} is on {tensor.device}"
            values[name] = to_numpy(tensor)
            _check_form(name, values[name], result)
            if result.owned is not None:
                checks.all_equal(f"{name}: rows of no sequence", values[name][result.owned :], result.absent)
        return {**values, **self._mutated(mutables)}

    def out_form(self, automatic=False):
        """The same, and the bits of every buffer that the call could write."""
        mutables, outs = self._stage_mutables(), self._stage_outputs()
        arguments = self._arguments(mutables)
        slot = None if automatic else self.target.slot
        size = harness.workspace_size(self.problem.operator, arguments, slot)
        workspace, whole = aligned_workspace(size, self.target.torch_device) if size else (None, None)
        self._call_out(arguments, outs, workspace, slot)
        if size:
            check_around(workspace, whole)
        self._check_untouched(mutables)
        outs.check_untouched()
        values = {name: outs.values(name) for name in self.problem.outputs}
        for name, result in self.problem.outputs.items():
            if result.owned is not None:
                assert is_poison(values[name][result.owned :]), f"{name}: rows of no sequence were written"
        return {**values, **self._mutated(mutables)}, {**mutables.fingerprint(), **outs.fingerprint()}

    def workspace_size(self):
        arguments = self._arguments(self._stage_mutables())
        return harness.workspace_size(self.problem.operator, arguments, self.target.slot)

    def expect_refusal(self, error):
        """Both forms refuse, and nothing is written."""
        mutables, outs = self._stage_mutables(), self._stage_outputs()
        arguments = self._arguments(mutables)
        with pytest.raises(error):
            harness.call_functional(self.problem.operator, arguments, self.target.slot)
        size = self.workspace_size()
        workspace = aligned_workspace(size, self.target.torch_device)[0] if size else None
        with pytest.raises(error):
            self._call_out(arguments, outs, workspace, self.target.slot)
        self._check_nothing_written(mutables, outs)

    def expect_missing_workspace(self, workspace):
        mutables, outs = self._stage_mutables(), self._stage_outputs()
        with pytest.raises(harness.MissingWorkspace):
            self._call_out(self._arguments(mutables), outs, workspace, self.target.slot)
        self._check_nothing_written(mutables, outs)

    def call_without_workspace(self):
        mutables, outs = self._stage_mutables(), self._stage_outputs()
        self._call_out(self._arguments(mutables), outs, None, self.target.slot)
        values = {name: outs.values(name) for name in self.problem.outputs}
        self.problem.verify({**values, **self._mutated(mutables)}, Notes())

    def _stage_mutables(self):
        return Stage(self._fresh, self.target.torch_device)

    def _stage_outputs(self):
        poisoned = {name: _poisoned(result) for name, result in self.problem.outputs.items()}
        return Stage(poisoned, self.target.torch_device)

    def _arguments(self, mutables):
        def staged(name, value):
            if not isinstance(value, Operand):
                return value
            return (mutables if name in self._fresh else self._constants).tensor(name)

        return {name: staged(name, value) for name, value in self.problem.arguments.items()}

    def _call_out(self, arguments, outs, workspace, slot):
        out = [outs.tensor(name) for name in self.problem.outputs]
        harness.call_out(self.problem.operator, arguments, slot, out, workspace)

    def _check_untouched(self, mutables):
        self._constants.check_untouched()
        mutables.check_untouched()

    def _check_nothing_written(self, mutables, outs):
        self._constants.check_untouched()
        mutables.check_untouched(mutables_too=True)
        outs.check_untouched(mutables_too=True)

    def _mutated(self, mutables):
        return {name: mutables.values(name) for name, operand in self._fresh.items() if operand.mutable}


def is_poison(array):
    return bool((bits(array) == poison(array.dtype)).all())


def _unless_refused(call, form):
    """Skips where a refusal is right: the case allows it, or another provider of the backend computes the call."""
    try:
        return form()
    except harness.Unsupported as error:
        refusal = str(error).strip()
    assert refusal, "a refusal without a reason"
    permission = call.problem.may_refuse
    if permission == "never" or (permission == "off-cpu" and call.target.device_type == "cpu"):
        form(automatic=True)
    pytest.skip(f"refused: {refusal}")


def _slab_of(name, operand):
    return getattr(operand.layout, "slab", None) or name


def _poisoned(result):
    array = np.empty(result.shape, result.dtype)
    bits(array)[...] = poison(result.dtype)
    return Operand(array, result.layout, mutable=True)


def _check_form(name, value, result):
    assert value.shape == result.shape, f"{name}: shape {value.shape}, expected {result.shape}"
    assert value.dtype == result.dtype, f"{name}: dtype {value.dtype}, expected {result.dtype}"
