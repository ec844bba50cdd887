"""Block by block: previews settle a block of noise, most confident bytes first, then a commit makes it history."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from .calls import Calls, Timing
from .checks import Checks
from .config import MASK, Config
from .network import BlockCache, Network, States
from .weights import make_weights


@dataclass
class Preview:
    """A block after one of its previews."""

    block: int
    number: int
    tokens: np.ndarray  # MASK where a byte is still noise
    settled: int
    live_rows: int
    seconds: float


@dataclass
class Result:
    """A finished run."""

    config: Config
    prompt: bytes
    generated: bytes
    checks: Checks
    timings: dict[str, Timing]
    previews: list[Preview] = field(default_factory=list)
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    moe_rows_computed: int = 0
    moe_rows_reused: int = 0
    coreset_size: float = 0.0


class Stopwatch:
    """Time that the network takes, without the checks between its calls."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._start = time.perf_counter() - checks.seconds

    def seconds(self) -> float:
        return time.perf_counter() - self._checks.seconds - self._start


class Decoder:
    """One sequence from prompt to the last block."""

    def __init__(self, config: Config, library: ModuleType) -> None:
        self.config = config
        self.library = library
        self.checks = Checks()
        self.calls = Calls(library, self.checks.observe)
        self.random = np.random.default_rng(config.seed + 2)

    def run(self, prompt: bytes, on_preview: Callable[[Preview], None]) -> Result:
        """Prefill the prompt, then decode every block, checking all the way."""
        c = self.config
        positions = len(prompt) + c.blocks * c.block_width
        weights = make_weights(c)
        network = Network(c, weights, self.calls, max(positions, 1))
        states = States.empty(c, positions)
        result = Result(c, prompt, b"", self.checks, self.calls.timings)

        watch = Stopwatch(self.checks)
        tokens = np.frombuffer(prompt, np.uint8).astype(np.int64)
        for start in range(0, max(len(tokens), 1), c.prefill_chunk):  # an empty prompt is one empty chunk
            network.commit(tokens[start : start + c.prefill_chunk], states)
        result.prefill_seconds = watch.seconds()

        cache_total = BlockCache()
        for block in range(c.blocks):
            watch = Stopwatch(self.checks)
            cache = BlockCache()
            settled = self._settle(network, states, cache, block, result, on_preview)
            records = network.commit(settled, states)
            result.decode_seconds += watch.seconds()
            result.generated += settled.astype(np.uint8).tobytes()
            cache_total.add(cache)
            for record in records:
                layer = weights.gdn[record.layer]
                where = f"layer {record.layer}, block {block + 1}"
                self.checks.replay(self.library, record, (layer.conv, layer.conv_bias), c.slot, where)
        result.moe_rows_computed, result.moe_rows_reused = cache_total.computed, cache_total.reused
        result.coreset_size = cache_total.experts / max(cache_total.coresets, 1)
        return result

    def _settle(
        self,
        network: Network,
        states: States,
        cache: BlockCache,
        block: int,
        result: Result,
        on_preview: Callable[[Preview], None],
    ) -> np.ndarray:
        """Preview the block until none of it is noise."""
        c = self.config
        tokens = np.full(c.block_width, MASK, np.int64)
        live = np.ones(c.block_width, bool)
        before = self.checks.snapshot(states)
        for number in range(c.previews):
            noisy = tokens == MASK
            if not noisy.any():
                break
            watch = Stopwatch(self.checks)
            logits = network.preview(tokens, live, states, cache)
            frontier = self._settle_most_confident(tokens, logits, c.previews - number)
            preview = Preview(
                block, number, tokens.copy(), int((tokens != MASK).sum()), int(live.sum()), watch.seconds()
            )
            # A row whose token is old and known would run on nearly the same input again: its MoE output is reused.
            live = (tokens == MASK) | frontier
            result.previews.append(preview)
            self.checks.compare_snapshot(before, states, f"block {block + 1}, preview {number + 1}")
            on_preview(preview)
        return tokens

    def _settle_most_confident(self, tokens: np.ndarray, logits: np.ndarray, previews_left: int) -> np.ndarray:
        """Draw a byte for every noisy place and keep the likeliest, an even share per preview. Returns where."""
        noisy = np.flatnonzero(tokens == MASK)
        scaled = logits[noisy].astype(np.float64) / self.config.temperature
        probability = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        probability /= probability.sum(axis=1, keepdims=True)
        drawn = (probability.cumsum(axis=1) < self.random.random((len(noisy), 1))).sum(axis=1).clip(max=255)
        confidence = probability[np.arange(len(noisy)), drawn]
        best = np.argsort(-confidence, kind="stable")[: -(-len(noisy) // previews_left)]
        tokens[noisy[best]] = drawn[best]
        frontier = np.zeros(len(tokens), bool)
        frontier[noisy[best]] = True
        return frontier
