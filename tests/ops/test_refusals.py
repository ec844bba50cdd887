"""Bad index values and bad workspaces.

On the CPU a bad value is refused before anything is written. Elsewhere its sequence, row or route is absent: everything
else has the bits of the same call with a legal value there.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from . import (
    checks,
    delta,
    harness,
    test_block_coreset,
    test_causal_conv1d,
    test_fused_moe,
    test_gated_delta_rule,
    test_preview_conv1d,
    test_preview_gated_delta_rule,
    test_preview_gdn,
    test_rotary_embedding,
)
from .arena import aligned_workspace
from .inputs import Case
from .runner import Call, is_poison

LENGTHS = (4, 7, 3)
LONG = (4, 70, 3)  # more tokens than what Triton's commit leaves to the native ones
BAD = 1  # the sequence, row or token with the bad value

BASES = {
    "causal_conv1d": (test_causal_conv1d, test_causal_conv1d.ConvCase("bf16", 40, LENGTHS, "separate")),
    "preview_conv1d": (test_preview_conv1d, test_preview_conv1d.PreviewConvCase("bf16", 40, LENGTHS)),
    "gated_delta_rule": (
        test_gated_delta_rule,
        test_gated_delta_rule.DeltaCase("bf16", delta.SMALL, LONG, "separate"),
    ),
    "preview_gated_delta_rule": (
        test_preview_gated_delta_rule,
        test_preview_gated_delta_rule.PreviewDeltaCase("bf16", delta.SMALL, LENGTHS),
    ),
    # Head dimensions that the tuned provider takes, so that every provider is asked.
    "preview_gdn": (test_preview_gdn, test_preview_gdn.PreviewGdnCase("bf16", delta.FULL_DIMS, LENGTHS)),
    "block_coreset": (test_block_coreset, test_block_coreset.CoresetCase("fp32", 64, 4, 12, LENGTHS)),
    "fused_moe": (test_fused_moe, test_fused_moe.MoeCase("bf16", 7, test_fused_moe.SMALL, shared=32)),
    "rotary_embedding": (
        test_rotary_embedding,
        test_rotary_embedding.RotaryCase("bf16", 7, test_rotary_embedding.TP2),
    ),
}
COMMITS = ("causal_conv1d", "gated_delta_rule")
PREVIEWS = ("preview_conv1d", "preview_gated_delta_rule", "preview_gdn")


@dataclass(frozen=True)
class RefusalCase(Case):
    operator: str
    fault: str


def cases():
    for operator, fault in product((*COMMITS, *PREVIEWS, "block_coreset"), SEQUENCE_FAULTS):
        yield RefusalCase(operator, fault, smoke=True)
    for operator in (*COMMITS, *PREVIEWS):
        yield RefusalCase(operator, "initial_beyond_pool", smoke=True)
    for operator, fault in product(COMMITS, ("final_beyond_pool", "written_twice", "read_and_written")):
        yield RefusalCase(operator, fault, smoke=True)
    for fault in ("expert_beyond", "expert_below"):
        yield RefusalCase("fused_moe", fault, smoke=True)
    for fault in ("position_beyond", "position_negative"):
        yield RefusalCase("rotary_embedding", fault, smoke=True)
    for operator, fault in product(BASES, WORKSPACE_FAULTS):
        yield RefusalCase(operator, fault, smoke=True)


def _from_one(cu_seqlens):
    cu_seqlens[0] = 1


def _decreasing(cu_seqlens):
    cu_seqlens[BAD] = cu_seqlens[BAD + 1] + 1


def _past_the_end(cu_seqlens):
    cu_seqlens[-1] += 1


def _set(name, value, index=BAD):
    return name, lambda array: array.__setitem__(index, value)


SEQUENCE_FAULTS = {
    "cu_seqlens_from_one": ("cu_seqlens", _from_one),
    "cu_seqlens_decreasing": ("cu_seqlens", _decreasing),
    "cu_seqlens_past_the_end": ("cu_seqlens", _past_the_end),
}
WORKSPACE_FAULTS = ("no_workspace", "short_workspace", "misaligned_workspace")
POOL = 2 * len(LENGTHS) + 2
CASES = list(cases())


def _spoil(problem, fault):
    """The problem with the bad value, and the same one with a legal value that stands for its absence."""
    arrays = {name: operand.array for name, operand in problem.operands.items()}
    if fault in SEQUENCE_FAULTS:
        name, change = SEQUENCE_FAULTS[fault]
        return _changed(problem, name, change), None
    if fault == "written_twice":
        return _changed(problem, *_set("final_state_indices", arrays["final_state_indices"][0])), None
    if fault == "read_and_written":
        return _changed(problem, *_set("final_state_indices", arrays["initial_state_indices"][0])), None
    name, bad, absent = {
        "initial_beyond_pool": ("initial_state_indices", POOL, -1),
        "final_beyond_pool": ("final_state_indices", POOL, -1),
        "expert_beyond": ("ids", test_fused_moe.SMALL[0], -1),
        "expert_below": ("ids", -2, -1),
        "position_beyond": ("positions", test_rotary_embedding.TABLE_ROWS, 0),
        "position_negative": ("positions", -1, 0),
    }[fault]
    index = (BAD, 0) if name == "ids" else BAD
    legal = _changed(problem, *_set(name, absent, index))
    if name == "initial_state_indices" and "final_state_indices" in arrays:
        legal = _changed(legal, *_set("final_state_indices", -1))
    return _changed(problem, *_set(name, bad, index)), legal


def _changed(problem, name, change):
    operand = problem.operands[name]
    array = operand.array.copy()
    change(array)
    arguments = {**problem.arguments, name: replace(operand, array=array)}
    return type(problem)(problem.operator, arguments, problem.outputs, problem.verify, problem.may_refuse)


def test_refusals(case, target):
    module, base = BASES[case.operator]
    problem = module.build(base)
    if case.fault in WORKSPACE_FAULTS:
        _check_workspace(Call(problem, target), case.fault)
        return
    bad, legal = _spoil(problem, case.fault)
    if target.checks_values:
        Call(bad, target).expect_refusal(harness.InvalidArgument)
    elif legal is None:
        # Which sequences are absent is not said: nothing outside the outputs may change, and nothing may crash.
        Call(_without_owners(bad), target).out_form()
    else:
        _check_absence(Call(bad, target), Call(legal, target))


def _check_workspace(call, fault):
    size, device = call.workspace_size(), call.target.torch_device
    if size == 0:
        call.call_without_workspace()
    elif fault == "no_workspace":
        call.expect_missing_workspace(None)
    elif fault == "short_workspace":
        call.expect_missing_workspace(aligned_workspace(size - 1, device)[0])
    else:
        call.expect_missing_workspace(aligned_workspace(size, device, shift=16)[0])


def _without_owners(problem):
    outputs = {name: replace(result, owned=None) for name, result in problem.outputs.items()}
    return type(problem)(problem.operator, problem.arguments, outputs, problem.verify, problem.may_refuse)


def _check_absence(bad, legal):
    functional, (out, _), (wanted, _) = bad.functional(), bad.out_form(), legal.out_form()
    absent = _absent_rows(bad.problem)
    for name, value in wanted.items():
        result, before = bad.problem.outputs.get(name), bad.problem.operands.get(name)
        missing = slice(0, 0)  # a pool, or the output of a token that lost one route
        if absent and result:
            missing = absent
            checks.all_equal(f"{name}: absent rows of the functional form", functional[name][missing], result.absent)
            assert is_poison(out[name][missing]), f"{name}: absent rows were written"
        elif absent and bad.problem.operator == "rotary_embedding":
            missing = absent
            checks.same_bits(f"{name}: absent rows", out[name][missing], before.array[missing])
        checks.same_bits(name, np.delete(out[name], missing, 0), np.delete(value, missing, 0))


def _absent_rows(problem):
    """Rows of the absent sequence or token; None where only a route is skipped."""
    if problem.operator == "fused_moe":
        return None
    if problem.operator == "rotary_embedding":
        return slice(BAD, BAD + 1)
    lengths = LONG if problem.operator == "gated_delta_rule" else LENGTHS
    begin = sum(lengths[:BAD])
    return slice(begin, begin + lengths[BAD])


@pytest.mark.parametrize("routing", ["one_expert", "omitted", "none"])
def test_moe_workspace_does_not_depend_on_the_routing(routing):
    spread = test_fused_moe.MoeCase("bf16", 64, test_fused_moe.SMALL)
    for target in harness.targets("fused_moe"):
        sizes = {
            Call(test_fused_moe.build(case), target).workspace_size()
            for case in (spread, replace(spread, routing=routing))
        }
        assert len(sizes) == 1
