"""gated_delta_rule: outputs and the FP32 states that a commit leaves behind."""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from . import delta
from .arena import Operand
from .checks import all_equal, close_by_length, delta_rule_bound, same_bits
from .inputs import DTYPES, INDEX_CYCLE, SLOT_PATTERNS, Case, Sequences, make_slots, unique
from .runner import Problem, Result

OPERATOR = "gated_delta_rule"


@dataclass(frozen=True)
class DeltaCase(Case):
    dtype: str
    heads: tuple[int, int, int, int]
    lengths: tuple[int, ...]
    slots: str = "same"
    l2norm: bool = True
    layout: str = "dense"
    state: str = "k_last"
    index: str = "i32"
    tail: int = 0
    scale: float | None = None
    decay: str = "usual"
    hint: int | None = None
    nonfinite: bool = False


SMALL_DIMS = (delta.SMALL, delta.WIDE_V, delta.WIDE_K, delta.FULL_DIMS)
EQUAL = [(width,) * count for width in (1, 2, 7, 8, 31, 32, 33, 64) for count in (1, 3)] + [(1,) * 4, (8,) * 4]
UNEQUAL = [(4, 7), (1, 8, 32), (0, 5, 0, 2), (33, 1, 0, 64), (0,), (0, 0), ()]
LONG = [(65,), (257,), (300,), (1, 65, 8), (257, 0, 2)]


def smoke_cases():
    for dtype, width, count in product(("bf16", "fp16", "fp32"), (1, 8, 32), (1, 3, 4)):
        yield DeltaCase(dtype, delta.SMALL, (width,) * count, "separate", layout="packed", smoke=True)
    for dtype, slots in product(("bf16", "fp32"), SLOT_PATTERNS):
        yield DeltaCase(dtype, delta.WIDE_V, (4, 7), slots, smoke=True)
        yield DeltaCase(dtype, delta.WIDE_K, (0, 5, 0, 2, 1), slots, l2norm=False, index="i64", tail=2, smoke=True)
    for state, heads in product(delta.STATE_LAYOUTS, (delta.WIDE_V, delta.WIDE_K, delta.V96)):
        yield DeltaCase("bf16", heads, (4, 7), "separate", state=state, layout="packed", smoke=True)
    yield DeltaCase("bf16", delta.TP1, (4, 7), "separate", layout="packed", smoke=True)
    yield DeltaCase("bf16", delta.TP2, (8,), smoke=True)
    yield DeltaCase("fp32", delta.SMALL, (65, 3), "separate", smoke=True)
    yield DeltaCase("bf16", delta.SMALL, (5, 3, 4), "separate", nonfinite=True, smoke=True)


def full_cases():
    main = product(DTYPES, SMALL_DIMS, EQUAL + UNEQUAL, (True, False), SLOT_PATTERNS)
    layouts = cycle(("dense", "packed", "gapped", "offset", "packed"))
    states = cycle(("k_last", "k_last", "v_last", "k_last_gaps", "k_last", "v_last_gaps"))
    tails = cycle((0, 0, 3, 0, 0, 1, 0))
    scales = cycle((None, None, 1.0, None, 0.25))
    decays = cycle(("usual", "strong", "usual", "none", "usual", "usual", "usual", "usual", "usual", "usual", "usual"))
    hints = cycle((None, None, 64, 1, None, 8, None, None, None, None, None, None, None))
    options = zip(layouts, states, cycle(INDEX_CYCLE), tails, scales, decays, hints)
    for (dtype, heads, lengths, l2norm, slots), (layout, state, index, tail, scale, decay, hint) in zip(main, options):
        yield DeltaCase(dtype, heads, lengths, slots, l2norm, layout, state, index, tail, scale, decay, hint)
    for dtype, heads, lengths, decay in product(DTYPES, SMALL_DIMS, LONG, ("usual", "strong", "none")):
        yield DeltaCase(dtype, heads, lengths, "separate", layout="packed", decay=decay)
        yield DeltaCase(dtype, heads, lengths, "fresh", state="v_last", decay=decay)
    for dtype, state, lengths in product(DTYPES, delta.STATE_LAYOUTS, ((1,), (4, 7), (8, 0, 32), (65,))):
        yield DeltaCase(dtype, delta.V96, lengths, "mixed", state=state)
    for dtype, state in product(DTYPES, delta.STATE_LAYOUTS):
        yield DeltaCase(dtype, (1, 2, 64, 64), (8,) * 64, "mixed", state=state)
        yield DeltaCase(dtype, (1, 2, 64, 64), tuple(n % 9 for n in range(64)), "mixed", state=state)
        yield DeltaCase(dtype, delta.SMALL, (9, 2, 4), "separate", state=state, nonfinite=True)
        yield DeltaCase(dtype, delta.SMALL, (70, 2, 66), "same", state=state, nonfinite=True)
    for dtype, heads, lengths in product(DTYPES, (delta.TP1, delta.TP2), ((1,), (1, 1, 1), (4, 7), (8, 0, 32))):
        yield DeltaCase(dtype, heads, lengths, "mixed", layout="packed")
    for heads in (delta.TP1, delta.TP2):
        yield DeltaCase("bf16", heads, (65,), "same", layout="packed")


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    sequences = Sequences(case.lengths, case.tail)
    slots = make_slots(case.slots, sequences.count, rng, case.index)
    tensors = delta.make_tensors(rng, case.heads, sequences.tokens, dtype, case.l2norm, case.decay)
    spoiled = _inject(tensors, sequences) if case.nonfinite else set()
    state = delta.make_state(rng, case.heads, slots)
    cu_seqlens = sequences.cu_seqlens(case.index)
    o, new_state = reference.gated_delta_rule(
        **tensors,
        state=state,
        cu_seqlens=cu_seqlens,
        initial_state_indices=slots.initial,
        final_state_indices=slots.final,
        scale=case.scale,
        l2norm=case.l2norm,
    )
    sound = [n for n in range(sequences.count) if n not in spoiled]

    def verify(values, notes):
        _verify_outputs(values["o"])
        _verify_states(values["state"])

    def _verify_outputs(actual):
        got, wanted = sequences.split(actual), sequences.split(o)
        lengths = [case.lengths[n] for n in sound]
        close_by_length("o", [got[n] for n in sound], [wanted[n] for n in sound], lengths, delta.bound_of(dtype))

    def _verify_states(actual):
        written = slots.written(case.lengths)
        resting = [slot for slot in range(slots.pool) if slot not in written]
        same_bits("state: slots that no sequence writes", actual[resting], state[resting])
        advanced = {}
        for slot, n in written.items():
            if case.lengths[n]:
                advanced[slot] = n
            elif slots.initial[n] >= 0:
                same_bits(f"state of sequence {n}, which has no tokens", actual[slot], state[slots.initial[n]])
            else:
                all_equal(f"state of sequence {n}, which starts from zeros", actual[slot], 0)
        checked = [slot for slot, n in advanced.items() if n in sound]
        lengths = [case.lengths[advanced[slot]] for slot in checked]
        close_by_length("state", actual[checked], new_state[checked], lengths, delta_rule_bound)

    arguments = {
        **delta.operands(tensors, case.layout),
        "state": Operand(state, delta.STATE_LAYOUTS[case.state], mutable=True),
        "cu_seqlens": Operand(cu_seqlens),
        "initial_state_indices": Operand(slots.initial),
        "final_state_indices": Operand(slots.final),
        "scale": case.scale,
        "l2norm": case.l2norm,
    }
    if case.hint is not None:
        arguments["max_seqlen"] = case.hint
    outputs = {"o": Result(o.shape, dtype, owned=sequences.owned, layout=delta.output_layout(case.layout))}
    return Problem(OPERATOR, arguments, outputs, verify, may_refuse="always" if case.heads == delta.V96 else "never")


def _inject(tensors, sequences):
    """Spoils the first and the last sequence; a chunked form may spread that over all their rows, but no further."""
    first, last = 0, sequences.count - 1
    tensors["v"][sequences.rows(first).start + 1, 0, 3] = np.nan
    tensors["k"][sequences.rows(last).start, 0, 5] = np.inf
    return {first, last}


def test_gated_delta_rule(check):
    check(build)
