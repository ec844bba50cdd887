"""topk_softmax: ids exactly, whatever the logits hold."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import reference

from .arena import LAYOUTS, Operand
from .checks import FP32_BOUND, close, same_bits
from .inputs import DTYPES, Case, normal, unique
from .runner import Problem, Result

OPERATOR = "topk_softmax"


@dataclass(frozen=True)
class TopkCase(Case):
    dtype: str
    tokens: int
    experts: int
    k: int
    renormalize: bool = False
    values: str = "usual"
    layout: str = "dense"


VALUES = ("usual", "ties", "equal", "nonfinite", "extreme")


def smoke_cases():
    for tokens, values, renormalize in product((1, 32, 64), VALUES, (True, False)):
        yield TopkCase("fp32", tokens, 256, 8, renormalize, values, smoke=True)
    for dtype, layout in product(DTYPES, LAYOUTS):
        yield TopkCase(dtype, 7, 64, 4, values="ties", layout=layout, smoke=True)
    yield TopkCase("bf16", 0, 256, 8, smoke=True)


def full_cases():
    sizes = ((8, 1), (8, 8), (16, 2), (33, 4), (64, 6), (128, 8), (256, 1), (256, 8))
    for dtype, tokens, (experts, k), renormalize, values in product(
        DTYPES, (1, 7, 64, 257), sizes, (True, False), VALUES
    ):
        yield TopkCase(dtype, tokens, experts, k, renormalize, values, "rows" if tokens == 64 else "dense")
    for dtype, layout, values in product(DTYPES, LAYOUTS, VALUES):
        yield TopkCase(dtype, 33, 256, 8, True, values, layout)
    for dtype in DTYPES:
        yield TopkCase(dtype, 0, 16, 2)
        yield TopkCase(dtype, 4096, 256, 8, True)


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng = case.rng()
    logits = make_logits(rng, (case.tokens, case.experts), DTYPES[case.dtype], case.values)
    ids, weights = reference.topk_softmax(logits, case.k, case.renormalize)
    # A row with an infinity has no finite softmax: only its ids are defined.
    defined = ~np.isposinf(logits.astype(np.float32)).any(-1)

    def verify(values, notes):
        same_bits("ids", values["ids"], ids)
        close("weights", values["weights"][defined], weights[defined], FP32_BOUND)

    arguments = {
        "logits": Operand(logits, LAYOUTS[case.layout](2)),
        "k": case.k,
        "renormalize": case.renormalize,
    }
    return Problem(OPERATOR, arguments, routing_outputs(case.tokens, case.k), verify)


def make_logits(rng, shape, dtype, values):
    logits = normal(rng, shape, dtype, 2.0)
    if values == "ties":
        logits = np.round(logits.astype(np.float32)).astype(dtype)
    elif values == "equal":
        logits[...] = dtype.type(0.5)
    elif values == "extreme":
        logits = normal(rng, shape, dtype, 3000.0)
    elif values == "nonfinite":
        _spoil(rng, logits)
    return logits


def _spoil(rng, logits):
    """NaN and infinities here and there, and every fourth row without anything above -inf."""
    kind = rng.integers(0, 12, logits.shape)
    logits[kind == 0] = np.nan
    logits[kind == 1] = -np.inf
    plus = (kind == 2) & (np.arange(logits.shape[0]) % 4 == 1)[:, None]
    logits[plus] = np.inf
    logits[3::4] = np.where(kind[3::4] % 2 == 0, np.nan, -np.inf).astype(logits.dtype)


def routing_outputs(tokens, k, owned=None):
    return {
        "ids": Result((tokens, k), np.dtype(np.int32), owned, absent=-1),
        "weights": Result((tokens, k), np.dtype(np.float32), owned),
    }


def test_topk_softmax(check):
    check(build)
