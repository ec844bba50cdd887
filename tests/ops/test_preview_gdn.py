"""preview_gdn: the preview of one whole GDN layer core, intermediates in FP32, both pools bit for bit."""

from dataclasses import dataclass
from itertools import cycle, product

import numpy as np
import reference

from . import delta
from .arena import DENSE, LAYOUTS, Operand, gapped, interleaved, rows
from .checks import COMPOUND_BOUNDS, close_by_length, delta_rule_bound
from .inputs import DTYPES, INDEX_CYCLE, PREVIEW_WIDTHS, Case, Sequences, make_slots, normal, unique
from .runner import Problem, Result

OPERATOR = "preview_gdn"


@dataclass(frozen=True)
class PreviewGdnCase(Case):
    dtype: str
    heads: tuple[int, int, int, int]
    lengths: tuple[int, ...]
    slots: str = "discard"
    read: str = "bidirectional"
    norm: bool = True
    bias: bool = False
    layout: str = "dense"
    state: str = "k_last"
    index: str = "i32"
    tail: int = 0
    scale: float | None = None
    eps: float = 1e-6
    hint: int | None = None


READ_MODES = ("bidirectional", "block", "causal")
READS = ("discard", "padded", "mixed", "shared_read")
SMALL_DIMS = (delta.SMALL, delta.WIDE_V, delta.WIDE_K, delta.FULL_DIMS)


def smoke_cases():
    for width, count in product((1, 8, 32), (1, 3, 4)):
        yield PreviewGdnCase("bf16", delta.SMALL, (width,) * count, layout="split", smoke=True)
        yield PreviewGdnCase("fp32", delta.WIDE_V, (width,) * count, "mixed", "causal", smoke=True)
        yield PreviewGdnCase("fp16", delta.WIDE_K, (width,) * count, "mixed", "block", bias=True, smoke=True)
    for read, slots, norm in product(READ_MODES, READS, (True, False)):
        yield PreviewGdnCase("bf16", delta.SMALL, (0, 4, 7), slots, read, norm, index="i64", tail=2, smoke=True)
    for state in delta.STATE_LAYOUTS:
        yield PreviewGdnCase("bf16", delta.V96, (8, 7), "mixed", state=state, smoke=True)
    for heads in (delta.TP1, delta.TP2):
        yield PreviewGdnCase("bf16", heads, (8,), layout="split", smoke=True)


def full_cases():
    equal = [(width,) * count for width in PREVIEW_WIDTHS for count in (1, 3)]
    unequal = [(4, 7), (1, 8, 32), (0, 5, 0, 2), (0,), ()]
    main = product(DTYPES, SMALL_DIMS, equal + unequal, READ_MODES, (True, False))
    slots_of = cycle(READS)
    biases = cycle((False, False, True))
    layouts = cycle(("dense", "split", "gapped", "offset", "split"))
    states = cycle(("k_last", "k_last", "v_last", "k_last_gaps", "k_last", "v_last_gaps", "k_last"))
    tails = cycle((0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0))
    scales = cycle((None, None, 1.0, None, 0.25))
    epsilons = cycle((1e-6, 1e-6, 1e-5))
    hints = cycle((None, None, 64, 1, None, 8, None, None, None, None, None, None, None))
    options = zip(slots_of, biases, layouts, states, cycle(INDEX_CYCLE), tails, scales, epsilons, hints)
    for (dtype, heads, lengths, read, norm), (slots, *rest) in zip(main, options):
        yield PreviewGdnCase(dtype, heads, lengths, slots, read, norm, *rest)
    for dtype, read in product(DTYPES, READ_MODES):
        yield PreviewGdnCase(dtype, (1, 2, 64, 64), (8,) * 64, "mixed", read)
        yield PreviewGdnCase(dtype, (1, 2, 64, 64), tuple(n % 9 for n in range(64)), "mixed", read)
        yield PreviewGdnCase(dtype, delta.SMALL, (100, 4), read=read)
        yield PreviewGdnCase(dtype, delta.V96, (8, 0, 32), "mixed", read, layout="split")
    for dtype, heads, lengths in product(DTYPES, (delta.TP1, delta.TP2), ((1,), (1, 1, 1), (8, 0, 32))):
        yield PreviewGdnCase(dtype, heads, lengths, "mixed", layout="split")


CASES = unique(smoke_cases(), full_cases())


def build(case):
    rng, dtype = case.rng(), DTYPES[case.dtype]
    H, HV, K, V = case.heads
    channels = 2 * H * K + HV * V
    sequences = Sequences(case.lengths, case.tail)
    slots = make_slots(case.slots, sequences.count, rng, case.index)
    qkv = _lean(normal(rng, (channels, sequences.tokens), np.float32), H * K).T.astype(dtype)
    qkv[:, 2 * H * K :] *= dtype.type(4)  # values large enough for FP16 bounds, whatever the scale
    shape = (sequences.tokens, HV)
    a, b = normal(rng, shape, dtype), normal(rng, shape, dtype)
    z = normal(rng, (*shape, V), dtype) if case.norm else None
    conv_weight = _lean(normal(rng, (channels, 4), np.float32, 0.5), H * K).astype(dtype)
    conv_bias = normal(rng, (channels,), dtype, 0.3) if case.bias else None
    conv_state = normal(rng, (channels, slots.pool, 3), np.float32)
    conv_state = slots.poison_unread(_lean(conv_state, H * K).swapaxes(0, 1).astype(dtype))
    A_log = np.log(rng.uniform(0.2, 4, HV)).astype(np.float32)
    dt_bias = rng.uniform(-3, 0, HV).astype(dtype)
    state = delta.make_state(rng, case.heads, slots)
    cu_seqlens = sequences.cu_seqlens(case.index)
    norm_weight = (1 + 0.2 * rng.standard_normal(V)).astype(dtype) if case.norm else None
    o = reference.preview_gdn(
        qkv, a, b, z, conv_weight, conv_bias, conv_state, A_log, dt_bias, state, cu_seqlens, slots.initial,
        norm_weight, case.eps, case.scale, case.read,
    )  # fmt: skip

    def bound(tokens):
        return delta_rule_bound(tokens) if dtype == np.float32 else COMPOUND_BOUNDS[dtype.name]

    def verify(values, notes):
        close_by_length("o", sequences.split(values["o"]), sequences.split(o), case.lengths, bound)

    layout = rows if case.layout == "split" else LAYOUTS[case.layout]
    gates = {"a": layout(2), "b": layout(2)}
    if case.layout == "split":
        gates = interleaved("ab", {"a": shape, "b": shape})
    arguments = {
        "qkv": Operand(qkv, layout(2)),
        "a": Operand(a, gates["a"]),
        "b": Operand(b, gates["b"]),
        "z": None if z is None else Operand(z, layout(3)),
        "conv_weight": Operand(conv_weight),
        "conv_bias": None if conv_bias is None else Operand(conv_bias),
        "conv_state": Operand(conv_state, rows(3) if case.layout == "split" else DENSE),
        "A_log": Operand(A_log),
        "dt_bias": Operand(dt_bias),
        "state": Operand(state, delta.STATE_LAYOUTS[case.state]),
        "cu_seqlens": Operand(cu_seqlens),
        "initial_state_indices": Operand(slots.initial),
        "norm_weight": None if norm_weight is None else Operand(norm_weight),
        "eps": case.eps,
        "scale": case.scale,
        "read": case.read,
    }
    if case.hint is not None:
        arguments["max_seqlen"] = case.hint
    out = {"split": rows(3), "gapped": gapped(3)}.get(case.layout, DENSE)
    outputs = {"o": Result(o.shape, dtype, owned=sequences.owned, layout=out)}
    return Problem(OPERATOR, arguments, outputs, verify, may_refuse=_may_refuse(case))


def _lean(channels_first, width):
    """Query channels that lean towards their key channels, so that no output is a sum that cancels."""
    query, key = channels_first[:width], channels_first[width : 2 * width]
    channels_first[:width] = (query + key) / np.float32(2**0.5)
    return channels_first


def _may_refuse(case):
    if case.heads == delta.V96:
        return "always"
    return "off-cpu" if max(case.lengths, default=0) > 64 else "never"


def test_preview_gdn(check):
    check(build)
