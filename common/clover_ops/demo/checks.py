"""What the demo proves: states untouched by previews, commits that may be cut anywhere, results within the bounds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from . import reference
from .network import GdnCommit, States
from .weights import BF16

FP32_BOUND = 2e-6
BF16_BOUND = 2.5e-3
DEEP_BF16_BOUND = 4e-3  # fused_moe and preview_gdn
NEAR_TIE = 1e-5

# The outputs of each operator, then the tensors that it changes, and how each is compared.
RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "causal_conv1d": (("y", "rounded"), ("conv_state", "exact")),
    "preview_conv1d": (("y", "rounded"),),
    "gated_delta_net_gating": (("g", "rounded"), ("beta", "rounded")),
    "gated_delta_rule": (("o", "rounded"), ("state", "state")),
    "preview_gated_delta_rule": (("o", "rounded"),),
    "preview_gdn": (("o", "deep"),),
    "topk_softmax": (("ids", "exact"), ("weights", "rounded")),
    "block_coreset": (("coreset", "exact"), ("ids", "exact"), ("weights", "rounded")),
    "live_row_routes": (("live_ids", "exact"), ("live_weights", "exact"), ("rows", "exact"), ("count", "exact")),
    "merge_live_rows": (("out", "exact"), ("cache", "exact")),
    "fused_moe": (("y", "deep"),),
    "rotary_embedding": (("q", "rounded"), ("k", "rounded")),
    "rearrange": (("dst", "exact"),),
    "cast": (("dst", "exact"),),
    "rms_norm_gated": (("y", "rounded"),),
}


@dataclass
class Outcome:
    """One comparison: `used` is the error as a share of what is allowed; above 1 it fails."""

    error: float
    bound: float
    used: float
    unit: str = "relative error"


@dataclass
class Tally:
    """All comparisons of one kind."""

    name: str
    compared: int = 0
    failed: int = 0
    worst: Outcome = field(default_factory=lambda: Outcome(0.0, 0.0, 0.0))
    near_ties: int = 0
    first_failure: str = ""
    first_failure_time: float = 0.0

    def add(self, outcome: Outcome, where: str) -> None:
        self.compared += 1
        if self.compared == 1 or outcome.used > self.worst.used:
            self.worst = outcome
        if not outcome.used <= 1:
            self.failed += 1
            if not self.first_failure:
                self.first_failure_time = time.perf_counter()
                self.first_failure = (
                    f"{self.name}: {outcome.unit} {outcome.error:.3g}, bound {outcome.bound:.3g} ({where})"
                )


def delta_rule_bound(tokens: int) -> float:
    """What an FP32 state may be off by after a sequence of this many tokens."""
    return 2e-6 if tokens <= 1 else 2e-5 if tokens <= 64 else 1e-4


def within_bound(out: np.ndarray, expected: np.ndarray, bound: float) -> Outcome:
    """The operator guide's two conditions: one on the whole output, one on each row of the last axis."""
    if out.shape != expected.shape:
        return Outcome(np.inf, bound, np.inf, f"shape {out.shape} in place of {expected.shape}, error")
    if not expected.size:
        return Outcome(0.0, bound, 0.0)
    expected = expected.astype(np.float64)
    difference = out.astype(np.float64) - expected
    norm = float(np.linalg.norm(expected))
    error = float(np.linalg.norm(difference))
    if not np.isfinite(error) or not norm:
        return Outcome(error, bound, 0.0 if error == 0 else np.inf)
    row_norms = np.linalg.norm(expected, axis=-1)
    allowed = 2 * bound * np.maximum(row_norms, np.sqrt((row_norms**2).mean()))
    worst_row = float((np.linalg.norm(difference, axis=-1) / allowed).max())
    small = 2 if expected.size < 1024 else 1  # rounding does not average out over few values
    return Outcome(error / norm, bound, max(error / norm / (small * bound), worst_row))


def identical(out: np.ndarray, expected: np.ndarray) -> Outcome:
    """Bit for bit."""
    if out.shape != expected.shape:
        return Outcome(np.inf, 0.0, np.inf, f"shape {out.shape} in place of {expected.shape}, error")
    expected = expected.astype(out.dtype)
    different = int((_bits(out) != _bits(expected)).sum())
    return Outcome(different, 0.0, np.inf if different else 0.0, "elements that differ")


def same_pool(out: np.ndarray, expected: np.ndarray, final: np.ndarray, tokens: int) -> Outcome:
    """A pool of GDN states: the slots that were written within the bound, all others bit for bit."""
    written = final[final >= 0]
    others = np.setdiff1d(np.arange(len(out)), written)
    untouched = identical(out[others], expected[others])
    return untouched if untouched.used else within_bound(out[written], expected[written], delta_rule_bound(tokens))


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


class Checks:
    """Collects every comparison; `failures()` tells the verdict."""

    def __init__(self) -> None:
        self.operators: dict[str, Tally] = {}
        self.untouched = Tally("states after a preview")
        self.conv_steps = Tally("convolution state, one commit against token by token")
        self.conv_outputs = Tally("convolution output, one commit against token by token")
        self.delta_steps = Tally("GDN state, one commit against token by token")
        self.delta_outputs = Tally("GDN output, one commit against token by token")
        self.bitwise_steps = 0
        self.seconds = 0.0

    def tallies(self) -> list[Tally]:
        steps = [self.conv_steps, self.conv_outputs, self.delta_steps, self.delta_outputs]
        return [self.untouched, *steps, *self.operators.values()]

    def failures(self) -> list[Tally]:
        """What failed, in order of time: a wrong value spreads, and the first one tells the cause."""
        return sorted((tally for tally in self.tallies() if tally.failed), key=lambda tally: tally.first_failure_time)

    # Each operator against the equations

    def observe(self, operator: str, arguments: tuple, attributes: dict[str, Any], results: tuple) -> None:
        """Compare one call with float64. The arguments are those from before the call."""
        start = time.perf_counter()
        expected = getattr(reference, operator)(*arguments, **attributes)
        if operator == "block_coreset":
            expected = self._settle_near_ties(arguments, attributes, results, expected)
        for (name, rule), out, wanted in zip(RULES[operator], results, expected, strict=True):
            key = f"{operator}.{name}"
            tally = self.operators.setdefault(key, Tally(key))
            where = f"call {tally.compared + 1}"
            if rule == "exact":
                tally.add(identical(out, wanted), where)
            elif rule == "state":
                tally.add(same_pool(out, wanted, arguments[8], int(np.diff(arguments[6]).max(initial=0))), where)
            else:
                bound = FP32_BOUND if out.dtype != BF16 else DEEP_BF16_BOUND if rule == "deep" else BF16_BOUND
                tally.add(within_bound(out, wanted, bound), where)
        self.seconds += time.perf_counter() - start

    def _settle_near_ties(self, arguments: tuple, attributes: dict[str, Any], results: tuple, expected: tuple) -> tuple:
        """Where two scores nearly tie, either expert is right: then judge the routes by the coreset that was chosen."""
        logits, cu_seqlens, live = arguments
        chosen, wanted = results[0], expected[0]
        k = attributes["k"]
        scores = reference.coreset_scores(logits, cu_seqlens, live, k, attributes["mode"])
        ties = 0
        for n in range(len(scores)):
            disputed = scores[n][chosen[n] != wanted[n]]
            if not disputed.size or chosen[n].sum() != wanted[n].sum():
                continue
            if disputed.max() - disputed.min() > NEAR_TIE * disputed.max():
                return expected
            ties += 1
        if not ties:
            return expected
        key = "block_coreset.coreset"
        self.operators.setdefault(key, Tally(key)).near_ties += ties
        allowed = np.repeat(chosen, np.diff(cu_seqlens), axis=0)
        return chosen, *reference.route(logits, allowed, k, attributes["renormalize"])

    # Previews leave the committed states alone

    def snapshot(self, states: States) -> dict[str, np.ndarray]:
        """Copies of every pool, and of the committed rows of every cache."""
        return {name: array.copy() for name, array in _committed(states).items()}

    def compare_snapshot(self, before: dict[str, np.ndarray], states: States, where: str) -> None:
        start = time.perf_counter()
        for name, array in _committed(states).items():
            self.untouched.add(identical(array, before[name]), f"{name}, {where}")
        self.seconds += time.perf_counter() - start

    # A commit may be cut anywhere

    def replay(self, library: ModuleType, record: GdnCommit, conv: tuple, slot: int, where: str) -> None:
        """Commit the recorded inputs again, token by token, from the same states, and compare with the one call.

        `conv` is the layer's convolution: weight and bias. Each operator gets exactly the inputs it had then.
        """
        start = time.perf_counter()
        conv_state, delta = record.conv_before.copy(), record.delta_before.copy()
        mixed, o = np.empty_like(record.mixed), np.empty_like(record.o)
        one, final = np.array([0, 1], np.int32), np.array([slot], np.int32)
        for t in range(len(record.qkv)):
            token = slice(t, t + 1)
            initial = record.initial if t == 0 else final
            mixed[token] = library.causal_conv1d(
                record.qkv[token], *conv, conv_state, one, initial, final, activation="silu"
            )
            rule = (tensor[token] for tensor in record.rule)
            o[token] = library.gated_delta_rule(*rule, delta, one, initial, final, l2norm=True)
        self.conv_steps.add(identical(conv_state, record.conv_after), where)
        self.conv_outputs.add(within_bound(mixed, record.mixed, BF16_BOUND), where)
        self.delta_steps.add(same_pool(delta, record.delta_after, final, len(record.qkv)), where)
        self.delta_outputs.add(within_bound(o, record.o, BF16_BOUND), where)
        self.bitwise_steps += not identical(delta, record.delta_after).used and not identical(o, record.o).used
        self.seconds += time.perf_counter() - start


def _committed(states: States) -> dict[str, np.ndarray]:
    arrays = {f"convolution pool of layer {layer}": pool for layer, pool in states.conv.items()}
    arrays |= {f"GDN pool of layer {layer}": pool for layer, pool in states.delta.items()}
    arrays |= {f"keys of layer {layer}": cache[:, : states.position] for layer, cache in states.keys.items()}
    return arrays | {f"values of layer {layer}": cache[:, : states.position] for layer, cache in states.values.items()}
