"""The gated delta rule's Triton kernels, with the configurations of both families that kernels.toml lists."""

from dataclasses import replace
from itertools import cycle, product
from pathlib import Path

import numpy as np
import pytest
from clover_ops.jit import kernels
from ops import delta
from ops import test_gated_delta_rule as commit
from ops import test_preview_gated_delta_rule as preview
from ops.arena import Operand, Stage, bits, poison
from ops.inputs import PREVIEW_WIDTHS, SLOT_PATTERNS, Case, unique

from . import interpreter, launch

FOLDER = Path(__file__).resolve().parents[2] / "common" / "kernels" / "triton"
TABLE = {kernel.name: dict(kernel.configs) for kernel in kernels.read(FOLDER)}
BACKENDS = ("cuda", "hip")

# H, HV, K, V: few programs, each with all its work
PAIR = (1, 2, 64, 64)
SINGLE = (1, 1, 64, 64)
WIDE_V = (1, 1, 64, 128)
ODD = (1, 1, 96, 80)


@pytest.fixture(scope="module")
def module():
    with interpreter.loaded(FOLDER, "delta_rule") as module:
        yield module


def _by_tiles(plans):
    """Warps and stages make no difference to the interpreter."""
    return list({(plan[0], *(config.constexprs for config in plan[1:])): plan for plan in plans}.values())


PREVIEWS = _by_tiles((backend, config) for backend in BACKENDS for config in TABLE["preview_delta"][backend])
PAIRS = [
    (backend, prepare, advance)
    for backend in BACKENDS
    for prepare, advance in product(
        TABLE["gated_delta_chunk_prepare"][backend], TABLE["gated_delta_chunk_advance"][backend]
    )
    if dict(prepare.constexprs)["C"] == dict(advance.constexprs)["C"]
]
CHUNKS = _by_tiles(PAIRS)


def test_every_configuration_has_a_partner():
    for name, at in (("gated_delta_chunk_prepare", 1), ("gated_delta_chunk_advance", 2)):
        for backend in BACKENDS:
            paired = [pair[at] for pair in PAIRS if pair[0] == backend]
            assert set(TABLE[name][backend]) == set(paired), f"{name}, {backend}: a C that the other kernel has not"


def firsts(plans):
    """The one of each family that a bundle without Triton runs."""
    return [next(plan for plan in plans if plan[0] == backend) for backend in BACKENDS]


class Call:
    """A problem of tests/ops with all its tensors in poisoned slabs."""

    def __init__(self, problem):
        self.problem = problem
        self.tensors = Stage(problem.operands, "cpu")
        self.outputs = Stage({"o": _poisoned(problem.outputs["o"])}, "cpu")

    def operands(self):
        named = {name: self.tensors.tensor(name) for name in ("q", "k", "v", "g", "beta", "state", "cu_seqlens")}
        arguments = self.problem.arguments
        return launch.Operands(
            **named,
            initial=self.tensors.tensor("initial_state_indices"),
            o=self.outputs.tensor("o"),
            scale=arguments["scale"],
            l2norm=arguments["l2norm"],
        )

    def preview(self, module, plan, width):
        backend, config = plan
        launch.preview_delta(module, config, backend, self.operands(), self.problem.arguments["read"], width)

    def commit(self, module, plan):
        backend, prepare, advance = plan
        final = self.tensors.tensor("final_state_indices")
        launch.gated_delta_chunk(module, prepare, advance, backend, self.operands(), final)

    def check(self, absent=slice(0, 0)):
        """What no call may write has its old bits, rows of no sequence are untouched, and the rest is right. `absent`:
        rows of a sequence that had to be left alone."""
        self.tensors.check_untouched()
        self.outputs.check_untouched()
        o = self.outputs.values("o")
        for rows in (slice(self.problem.outputs["o"].owned, None), absent):
            assert (bits(o[rows]) == poison(o.dtype)).all(), "o: rows of no sequence were written"
        return {"o": o, "state": self.tensors.values("state")}


def _poisoned(result):
    array = np.empty(result.shape, result.dtype)
    bits(array)[...] = poison(result.dtype)
    return Operand(array, result.layout, mutable=True)


def parameters(cases):
    """(case, plan) with the id and the mark of the case."""
    return [
        pytest.param(case, plan, id=f"{plan[0]}-{_tiles(plan)}-{case}", marks=[pytest.mark.smoke] if case.smoke else [])
        for case, plan in cases
    ]


def _tiles(plan):
    return "-".join(f"{key}{value}" for config in plan[1:] for key, value in config.constexprs if key in ("BV", "C"))


def previews():
    Preview = preview.PreviewDeltaCase
    dtypes, reads = cycle(("bf16", "fp16", "fp32")), preview.READ_MODES
    counts, norms = cycle((1, 3, 4, 1)), cycle((True, True, False))
    slots, tails = cycle(preview.READS), cycle((0, 2))
    layouts = cycle(("packed", "dense", "gapped", "offset"))
    states = cycle(delta.STATE_LAYOUTS)
    for width, read, plan in product(PREVIEW_WIDTHS, reads, firsts(PREVIEWS)):
        lengths = (width,) * (next(counts) if width < 31 else 1)
        yield (
            Preview(
                next(dtypes), SINGLE, lengths, next(slots), read, next(norms), next(layouts), next(states),
                tail=next(tails), smoke=True,
            ),
            plan,
        )  # fmt: skip
    for read, plan in product(reads, firsts(PREVIEWS)):
        yield Preview("bf16", PAIR, (4, 7), "mixed", read, layout="packed", smoke=True), plan
        yield Preview("bf16", SINGLE, (33, 1, 0, 64), "mixed", read, decay="strong"), plan
        yield Preview("bf16", SINGLE, (0, 5, 0, 2), "mixed", read, tail=2, decay="none", smoke=True), plan
        yield Preview("fp32", SINGLE, (8, 8, 8, 8), "mixed", read, scale=1.0, smoke=True), plan
        yield Preview("bf16", WIDE_V, (8, 7), "mixed", read, smoke=True), plan
        yield Preview("fp16", ODD, (8, 7), "mixed", read, smoke=True), plan
        yield Preview("bf16", delta.V96, (8, 0, 31), "mixed", read), plan
    for plan in PREVIEWS:
        yield Preview("bf16", (1, 1, 128, 128), (32,), layout="packed", smoke=plan in firsts(PREVIEWS)), plan
        for dtype, width, read in product(("bf16", "fp16", "fp32"), PREVIEW_WIDTHS, reads):
            yield Preview(dtype, SINGLE, (width, width, width), "mixed", read), plan
    yield Preview("bf16", SINGLE, (), smoke=True), PREVIEWS[0]
    yield Preview("bf16", SINGLE, (0, 0), smoke=True), PREVIEWS[0]


def commits():
    Commit = commit.DeltaCase
    dtypes, norms = cycle(("bf16", "fp32", "fp16")), cycle((True, True, False))
    layouts = cycle(("packed", "dense", "gapped", "offset"))
    states = cycle(delta.STATE_LAYOUTS)
    mixed = (66, 0, 3, 100)
    for lengths, plan in product(((65,), (128,), (257,)), firsts(CHUNKS)):
        for first in (True, False):
            options = (next(norms), next(layouts), next(states))
            yield Commit(next(dtypes), SINGLE, lengths, "separate", *options, smoke=first or lengths == (65,)), plan
    for slots, plan in product(SLOT_PATTERNS, firsts(CHUNKS)):
        options = (next(norms), next(layouts), next(states))
        yield Commit(next(dtypes), SINGLE, mixed, slots, *options, tail=3, smoke=True), plan
    for decay, plan in product(("strong", "none"), firsts(CHUNKS)):
        yield Commit("fp32", SINGLE, (130,), "separate", decay=decay, smoke=True), plan
    for heads, plan in product((PAIR, WIDE_V, ODD), firsts(CHUNKS)):
        yield Commit("bf16", heads, (70, 2), "separate", smoke=True), plan
    for plan in firsts(CHUNKS):
        yield Commit("bf16", SINGLE, (70, 2, 66), "same", nonfinite=True, smoke=True), plan
    for plan in CHUNKS:
        yield Commit("bf16", (1, 1, 128, 128), (65,), "same", layout="packed", smoke=plan in firsts(CHUNKS)), plan
        for dtype, lengths in product(("bf16", "fp16", "fp32"), ((65,), (128, 1), (257, 0, 2), (1, 65, 8, 64))):
            for l2norm, slots in product((True, False), ("mixed", "separate")):
                yield Commit(dtype, PAIR, lengths, slots, l2norm), plan
        yield Commit("bf16", delta.V96, (100, 4, 66), "mixed"), plan
    yield Commit("bf16", SINGLE, (), smoke=True), CHUNKS[0]
    yield Commit("bf16", SINGLE, (0, 0), "separate", smoke=True), CHUNKS[0]


@pytest.mark.parametrize("case, plan", parameters(unique(previews())))
def test_preview(module, case: Case, plan):
    call = Call(preview.build(case))
    call.preview(module, plan, max(case.lengths, default=0))
    call.problem.verify(call.check(), None)


@pytest.mark.parametrize("case, plan", parameters(unique(commits())))
def test_commit_in_chunks(module, case: Case, plan):
    call = Call(commit.build(case))
    call.commit(module, plan)
    call.problem.verify(call.check(), None)


SLOTS = {"pool": lambda pool: pool, "huge": lambda pool: 2**31 - 1}


def spoil(problem, name, at, value):
    """The problem with one index changed."""
    operand = problem.arguments[name]
    array = operand.array.copy()
    array[at] = value
    return replace(problem, arguments={**problem.arguments, name: replace(operand, array=array)})


@pytest.mark.smoke
@pytest.mark.parametrize("bad", SLOTS)
@pytest.mark.parametrize("plan", firsts(PREVIEWS), ids=BACKENDS)
def test_preview_leaves_a_sequence_of_no_slot_alone(module, plan, bad):
    case = preview.PreviewDeltaCase("bf16", SINGLE, (8, 5, 7))
    problem = preview.build(case)
    right = Call(problem)
    right.preview(module, plan, 8)
    call = Call(spoil(problem, "initial_state_indices", 1, SLOTS[bad](problem.arguments["state"].array.shape[0])))
    call.preview(module, plan, 8)
    _others_are_equal(call.check(absent=slice(8, 13)), right.check(), (slice(0, 8), slice(13, None)))


@pytest.mark.smoke
@pytest.mark.parametrize("name, bad", [("initial_state_indices", "pool"), ("final_state_indices", "huge")])
@pytest.mark.parametrize("plan", firsts(CHUNKS), ids=BACKENDS)
def test_commit_leaves_a_sequence_of_no_slot_alone(module, plan, name, bad):
    case = commit.DeltaCase("bf16", SINGLE, (5, 66, 7), "separate")
    problem = commit.build(case)
    right = Call(problem)
    right.commit(module, plan)
    state = problem.arguments["state"].array
    call = Call(spoil(problem, name, 1, SLOTS[bad](state.shape[0])))
    call.commit(module, plan)
    values, wanted = call.check(absent=slice(5, 71)), right.check()
    _others_are_equal(values, wanted, (slice(0, 5), slice(71, None)))
    final = problem.arguments["final_state_indices"].array
    wanted["state"][final[1]] = state[final[1]]
    assert (bits(values["state"]) == bits(wanted["state"])).all(), "a slot of the absent sequence was written"


@pytest.mark.smoke
@pytest.mark.parametrize("offsets", [(0, 8, 4, 20), (0, 8, 90, 20), (0, 8, 13, 2**31 - 1), (0, 8, -5, 20)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_offsets_touch_nothing_else(module, backend, offsets):
    """Sequences whose offsets fall, or leave the tensor, are absent; the first one is sound, alone in its first rows."""
    at = BACKENDS.index(backend)
    problem = preview.build(preview.PreviewDeltaCase("bf16", SINGLE, (8, 5, 7)))
    right, call = Call(problem), Call(spoil(problem, "cu_seqlens", slice(None), offsets))
    right.preview(module, firsts(PREVIEWS)[at], 8)
    call.preview(module, firsts(PREVIEWS)[at], 8)
    _others_are_equal(call.check(), right.check(), (slice(0, 4),))

    problem = commit.build(commit.DeltaCase("bf16", SINGLE, (8, 5, 7), "separate"))
    right, call = Call(problem), Call(spoil(problem, "cu_seqlens", slice(None), offsets))
    right.commit(module, firsts(CHUNKS)[at])
    call.commit(module, firsts(CHUNKS)[at])
    values, wanted = call.check(), right.check()
    _others_are_equal(values, wanted, (slice(0, 4),))
    slot = problem.arguments["final_state_indices"].array[0]
    assert (bits(values["state"][slot]) == bits(wanted["state"][slot])).all()


def _others_are_equal(values, wanted, parts):
    for rows in parts:
        assert (bits(values["o"][rows]) == bits(wanted["o"][rows])).all(), f"o: rows {rows} of sound sequences differ"


@pytest.mark.smoke
@pytest.mark.parametrize("plan", firsts(PREVIEWS), ids=BACKENDS)
def test_preview_leaves_a_sequence_longer_than_its_width_alone(module, plan):
    problem = preview.build(preview.PreviewDeltaCase("bf16", SINGLE, (8, 20, 7)))
    call, right = Call(problem), Call(problem)
    call.preview(module, plan, 16)
    right.preview(module, plan, 20)
    o = call.check(absent=slice(8, 28))["o"]
    wanted = right.check()["o"]
    for rows in (slice(0, 8), slice(28, 35)):
        same = np.abs(o[rows].astype(np.float64) - wanted[rows].astype(np.float64))
        assert same.max() <= 0.02 * np.abs(wanted[rows].astype(np.float64)).max(), f"o: rows {rows} differ"
