"""block_coreset: the kept experts of each block, and routes among them.

Scores within 1e-5 of each other may be ranked either way: such blocks are counted as near ties, and those where the
provider's choice is not the reference's as other choices. Routes are judged against the mask that the provider chose.
"""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from .arena import LAYOUTS, Operand
from .checks import FP32_BOUND, close, same_bits
from .inputs import DTYPES, INDEX_CYCLE, PREVIEW_WIDTHS, Case, Sequences, unique
from .runner import Problem, Result
from .test_topk_softmax import make_logits, routing_outputs

OPERATOR = "block_coreset"


@dataclass(frozen=True)
class CoresetCase(Case):
    dtype: str
    experts: int
    k: int
    budget: int
    lengths: tuple[int, ...]
    mode: str = "vote"
    live: str = "all_rows"
    top_p: float | None = None
    renormalize: bool = False
    values: str = "usual"
    layout: str = "dense"
    index: str = "i32"
    tail: int = 0


MODES = ("vote", "max")
LIVE = ("all_rows", "some", "none", "one_block_none")


def smoke_cases():
    for width, count, mode in product((1, 8, 32), (1, 4), MODES):
        yield CoresetCase("fp32", 256, 8, 32, (width,) * count, mode, smoke=True)
        yield CoresetCase("fp32", 256, 8, 64, (width,) * count, mode, "some", 0.6, True, smoke=True)
    for live, mode, values in product(LIVE, MODES, ("usual", "ties", "nan")):
        yield CoresetCase("bf16", 64, 4, 12, (0, 4, 7, 1), mode, live, values=values, index="i64", tail=2, smoke=True)
    for budget, top_p in product((4, 64), (None, 0.3, 1.0)):
        yield CoresetCase("fp16", 64, 4, budget, (8, 3), top_p=top_p, layout="rows", smoke=True)
    yield CoresetCase("fp32", 64, 4, 12, (5, 3, 4), values="infinity", smoke=True)


def full_cases():
    sizes = ((16, 2, 5), (64, 4, 4), (64, 4, 12), (64, 4, 64), (256, 8, 32), (256, 8, 256))
    unequal = [(4, 7), (0, 5, 0, 2), (33, 1, 0, 64), (0,), ()]
    lengths = [(width,) * count for width in PREVIEW_WIDTHS for count in (1, 4)] + unequal
    main = product(sizes, lengths, MODES, (None, 0.3, 0.9), LIVE)
    dtypes = cycle(("fp32", "bf16", "fp32", "fp16", "fp32"))
    renormalize = cycle((False, True, True))
    values = cycle(("usual", "usual", "ties", "usual", "nan", "usual", "equal"))
    layouts = cycle(("dense", "rows", "gapped", "offset", "dense", "rows", "dense", "rows", "dense", "rows", "dense"))
    tails = cycle((0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0))
    options = zip(dtypes, renormalize, values, layouts, cycle(INDEX_CYCLE), tails)
    for ((experts, k, budget), lengths, mode, top_p, live), (dtype, *rest) in zip(main, options):
        yield CoresetCase(dtype, experts, k, budget, lengths, mode, live, top_p, *rest)
    for dtype, mode, top_p in product(DTYPES, MODES, (None, 0.5)):
        yield CoresetCase(dtype, 64, 4, 12, (9, 0, 2, 4), mode, top_p=top_p, values="infinity")
        yield CoresetCase(dtype, 256, 8, 48, (32,) * 64, mode, "some", top_p)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    sequences = Sequences(case.lengths, case.tail)
    shape = (sequences.tokens, case.experts)
    logits = make_logits(rng, shape, dtype, case.values)
    live = _make_live(rng, case, sequences)
    spoiled = _spoil(rng, case, sequences, logits)
    cu_seqlens = sequences.cu_seqlens(case.index)
    blocks = reference.block_scores(logits, cu_seqlens, live, case.k, case.mode)

    def verify(values, notes):
        coreset, ids = values["coreset"], values["ids"][: sequences.owned]
        assert ((ids >= -1) & (ids < case.experts)).all(), "ids: not an expert"
        for n, block in enumerate(blocks):
            if n not in spoiled:
                _verify_mask(n, coreset[n], block, notes)
                _verify_routes(n, coreset[n], values)

    def _verify_mask(n, mask, block, notes):
        verdict = reference.judge_coreset(mask, block, case.k, case.budget, case.top_p)
        notes.near_ties += verdict.near_tie
        notes.other_choices += verdict.other_choice
        own = np.flatnonzero(block.keep(case.k, case.budget, case.top_p)).tolist()
        assert verdict.accepted, f"block {n} keeps {np.flatnonzero(mask).tolist()}, the reference {own}"

    def _verify_routes(n, mask, values):
        tokens = sequences.rows(n)
        allowed = np.broadcast_to(mask, (case.lengths[n], case.experts))
        ids, weights = reference.topk_within(logits[tokens], allowed, case.k, case.renormalize)
        # A row whose kept experts are all at -inf, unlike others of the row, has no route that the page fixes.
        routed = (allowed & (logits[tokens].astype(np.float32) > -np.inf)).any(-1)
        same_bits(f"ids of block {n}", values["ids"][tokens][routed], ids[routed])
        close(f"weights of block {n}", values["weights"][tokens][routed], weights[routed], FP32_BOUND)

    arguments = {
        "logits": Operand(logits, LAYOUTS[case.layout](2)),
        "cu_seqlens": Operand(cu_seqlens),
        "live": None if live is None else Operand(live),
        "k": case.k,
        "budget": case.budget,
        "mode": case.mode,
        "top_p": case.top_p,
        "renormalize": case.renormalize,
    }
    outputs = {
        "coreset": Result((sequences.count, case.experts), np.dtype(np.bool_)),
        **routing_outputs(sequences.tokens, case.k, owned=sequences.owned),
    }
    return Problem(OPERATOR, arguments, outputs, verify)


def _make_live(rng, case, sequences):
    if case.live == "all_rows":
        return None
    live = rng.random(sequences.tokens) < 0.5
    if case.live == "none":
        live[:] = False
    if case.live == "one_block_none" and sequences.count:
        live[sequences.rows(sequences.count - 1)] = False
    return live


def _spoil(rng, case, sequences, logits):
    """`nan` keeps every row defined; `infinity` leaves the scores of the first block undefined, and of no other."""
    if case.values == "nan":
        logits[rng.random(logits.shape) < 0.05] = np.nan
        logits[rng.random(logits.shape) < 0.05] = -np.inf
    if case.values != "infinity":
        return set()
    logits[sequences.rows(0).start, 3] = np.inf
    return {0}


def test_block_coreset(check):
    check(build)
