"""The network's layers: Clover's operators for what they are for, NumPy for the linear layers and softmax attention.

Activations are BF16, recurrent states FP32, the residual stream FP32. A `preview` reads the committed states of a noisy
block and leaves them alone; a `commit` advances them by settled tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .calls import Calls
from .config import BYTES, Config
from .weights import BF16, MoeWeights, Weights, rotary_table


@dataclass
class States:
    """What the sequence has committed: per GDN layer two pools, per attention layer a cache of keys and values."""

    conv: dict[int, np.ndarray]  # [S, C, KC-1]
    delta: dict[int, np.ndarray]  # [S, HV, V, K]
    keys: dict[int, np.ndarray]  # [AKV, positions, AD]
    values: dict[int, np.ndarray]
    position: int = 0  # rows of the caches past it belong to nobody yet
    started: bool = False  # the slot holds a state

    @classmethod
    def empty(cls, config: Config, positions: int) -> States:
        """Nothing committed; every slot holds other sequences' values, so that a stray read or write shows."""
        random = np.random.default_rng(config.seed + 1)

        def noise(dtype: np.dtype | type, *shape: int) -> np.ndarray:
            return random.standard_normal(shape).astype(np.float32).astype(dtype)

        gdn = [i for i in range(config.layers) if not config.is_attention(i)]
        attention = [i for i in range(config.layers) if config.is_attention(i)]
        past = config.conv_width - 1
        delta_shape = (config.value_heads, config.value_dim, config.key_dim)
        cache_shape = (config.kv_heads, positions, config.head_dim)
        return cls(
            conv={i: noise(BF16, config.slots, config.conv_channels, past) for i in gdn},
            delta={i: noise(np.float32, config.slots, *delta_shape) for i in gdn},
            keys={i: np.zeros(cache_shape, BF16) for i in attention},
            values={i: np.zeros(cache_shape, BF16) for i in attention},
        )


@dataclass
class GdnCommit:
    """What a commit gave to one GDN layer's operators, and what came out of them."""

    layer: int
    initial: np.ndarray
    qkv: np.ndarray
    conv_before: np.ndarray
    conv_after: np.ndarray
    mixed: np.ndarray
    rule: tuple[np.ndarray, ...]  # q, k, v, g, beta
    delta_before: np.ndarray
    delta_after: np.ndarray
    o: np.ndarray


@dataclass
class BlockCache:
    """Per layer, the MoE outputs of the block's last preview; and how much was reused."""

    rows: dict[int, np.ndarray] = field(default_factory=dict)
    reused: int = 0
    computed: int = 0
    experts: int = 0
    coresets: int = 0

    def add(self, other: BlockCache) -> None:
        """Add another block's counts."""
        self.reused += other.reused
        self.computed += other.computed
        self.experts += other.experts
        self.coresets += other.coresets


def _index(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -x))


class Network:
    """A Clover network over one sequence."""

    def __init__(self, config: Config, weights: Weights, calls: Calls, positions: int) -> None:
        self.config = config
        self.weights = weights
        self.calls = calls
        self.cos_sin = rotary_table(config, positions)

    # Whole passes

    def preview(self, tokens: np.ndarray, live: np.ndarray, states: States, cache: BlockCache) -> np.ndarray:
        """Logits [W, 256] of a noisy block. Rows that are not live reuse the last preview's MoE outputs."""
        x = self.weights.embedding[tokens]
        for layer in range(self.config.layers):
            if self.config.is_attention(layer):
                x = x + self._attention(layer, x, states, causal=False)
            elif self.config.previews_by_parts(layer):
                x = x + self._gdn_preview_by_parts(layer, x, states)
            else:
                x = x + self._gdn_preview(layer, x, states)
            x = x + self._moe_preview(layer, x, live, cache)
        h = self._wide(self._norm(x, self.weights.final_norm))
        return h @ self.weights.embedding[:BYTES].T * self.config.hidden**-0.5

    def commit(self, tokens: np.ndarray, states: States) -> list[GdnCommit]:
        """Advance the states by these tokens, exactly and causally. Returns what each GDN layer's operators saw."""
        records = []
        x = self.weights.embedding[tokens]
        for layer in range(self.config.layers):
            if self.config.is_attention(layer):
                x = x + self._attention(layer, x, states, causal=True)
            else:
                mixed, record = self._gdn_commit(layer, x, states)
                records.append(record)
                x = x + mixed
            x = x + self._moe_commit(layer, x)
        states.position += len(tokens)
        states.started = True
        return records

    # Between FP32, where NumPy works, and BF16, where the operators do

    def _wide(self, x: np.ndarray) -> np.ndarray:
        wide = np.empty(x.shape, np.float32)
        self.calls("cast", x, wide)
        return wide

    def _narrow(self, x: np.ndarray) -> np.ndarray:
        narrow = np.empty(x.shape, BF16)
        self.calls("cast", x, narrow)
        return narrow

    def _norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        inverse = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(self.config.eps))
        return self._narrow(x * inverse * weight.astype(np.float32))

    def _project(self, h: np.ndarray, weight: np.ndarray, *shape: int) -> np.ndarray:
        return self._narrow(h @ weight).reshape(len(h), *shape)

    # GDN layers

    def _gdn_inputs(self, layer: int, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """qkv, a, b and z. b and a are views of one projection, interleaved head by head."""
        weights = self.weights.gdn[layer]
        h = self._wide(self._norm(x, weights.norm))
        ba = self._project(h, weights.ba, self.config.value_heads, 2)
        z = self._project(h, weights.z, self.config.value_heads, self.config.value_dim)
        return self._project(h, weights.qkv, self.config.conv_channels), ba[:, :, 1], ba[:, :, 0], z

    def _split(self, mixed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, k and v as views of the convolution's output."""
        c, tokens = self.config, len(mixed)
        keys = c.qk_heads * c.key_dim
        q = mixed[:, :keys].reshape(tokens, c.qk_heads, c.key_dim)
        k = mixed[:, keys : 2 * keys].reshape(tokens, c.qk_heads, c.key_dim)
        return q, k, mixed[:, 2 * keys :].reshape(tokens, c.value_heads, c.value_dim)

    def _gdn_output(self, layer: int, o: np.ndarray) -> np.ndarray:
        values = o.reshape(len(o), self.config.value_heads * self.config.value_dim)
        return self._wide(values) @ self.weights.gdn[layer].out

    def _read_slot(self, states: States) -> np.ndarray:
        return _index(self.config.slot if states.started else -1)

    def _gdn_preview(self, layer: int, x: np.ndarray, states: States) -> np.ndarray:
        weights = self.weights.gdn[layer]
        qkv, a, b, z = self._gdn_inputs(layer, x)
        o = self.calls(
            "preview_gdn", qkv, a, b, z, weights.conv, weights.conv_bias, states.conv[layer], weights.a_log,
            weights.dt_bias, states.delta[layer], _index(0, len(x)), self._read_slot(states), weights.out_norm,
            eps=self.config.eps,
        )  # fmt: skip
        return self._gdn_output(layer, o)

    def _gdn_preview_by_parts(self, layer: int, x: np.ndarray, states: States) -> np.ndarray:
        weights = self.weights.gdn[layer]
        qkv, a, b, z = self._gdn_inputs(layer, x)
        block, slot = _index(0, len(x)), self._read_slot(states)
        mixed = self.calls(
            "preview_conv1d", qkv, weights.conv, weights.conv_bias, states.conv[layer], block, slot, activation="silu"
        )
        g, beta = self.calls("gated_delta_net_gating", a, b, weights.a_log, weights.dt_bias)
        q, k, v = self._split(mixed)
        o = self.calls(
            "preview_gated_delta_rule", q, k, v, g, beta, states.delta[layer], block, slot,
            l2norm=True, read="bidirectional",
        )  # fmt: skip
        return self._gdn_output(layer, self.calls("rms_norm_gated", o, weights.out_norm, z, eps=self.config.eps))

    def _gdn_commit(self, layer: int, x: np.ndarray, states: States) -> tuple[np.ndarray, GdnCommit]:
        weights = self.weights.gdn[layer]
        qkv, a, b, z = self._gdn_inputs(layer, x)
        conv, delta = states.conv[layer], states.delta[layer]
        conv_before, delta_before = conv.copy(), delta.copy()
        tokens, initial, final = _index(0, len(x)), self._read_slot(states), _index(self.config.slot)
        mixed = self.calls(
            "causal_conv1d", qkv, weights.conv, weights.conv_bias, conv, tokens, initial, final, activation="silu"
        )
        g, beta = self.calls("gated_delta_net_gating", a, b, weights.a_log, weights.dt_bias)
        rule = (*self._split(mixed), g, beta)
        o = self.calls("gated_delta_rule", *rule, delta, tokens, initial, final, l2norm=True)
        record = GdnCommit(
            layer, initial, qkv, conv_before, conv.copy(), mixed, rule, delta_before, delta.copy(), o
        )  # fmt: skip
        y = self.calls("rms_norm_gated", o, weights.out_norm, z, eps=self.config.eps)
        return self._gdn_output(layer, y), record

    # Attention layers

    def _attention(self, layer: int, x: np.ndarray, states: States, causal: bool) -> np.ndarray:
        """Gated attention over the committed keys and values and this call's own, which go behind them."""
        c, weights = self.config, self.weights.attention[layer]
        start, end = states.position, states.position + len(x)
        h = self._wide(self._norm(x, weights.norm))
        q = self._project(h, weights.q, c.heads, c.head_dim)
        k = self._project(h, weights.k, c.kv_heads, c.head_dim)
        v = self._project(h, weights.v, c.kv_heads, c.head_dim)
        self.calls("rotary_embedding", np.arange(start, end, dtype=np.int32), q, k, self.cos_sin)
        self.calls("rearrange", k.swapaxes(0, 1), states.keys[layer][:, start:end])
        self.calls("rearrange", v.swapaxes(0, 1), states.values[layer][:, start:end])

        group = c.heads // c.kv_heads
        keys = np.repeat(self._wide(states.keys[layer][:, :end]), group, axis=0)
        values = np.repeat(self._wide(states.values[layer][:, :end]), group, axis=0)
        scores = self._wide(q.swapaxes(0, 1)) @ keys.swapaxes(1, 2) * np.float32(c.head_dim**-0.5)
        if causal:
            future = np.arange(end) > np.arange(start, end)[:, None]
            scores = np.where(future, np.float32(-np.inf), scores)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        mixed = scores @ values / scores.sum(axis=-1, keepdims=True)
        gated = mixed.swapaxes(0, 1).reshape(len(x), c.heads * c.head_dim) * _sigmoid(h @ weights.gate)
        return self._wide(self._narrow(gated)) @ weights.out

    # The MoE behind every layer

    def _routed(self, layer: int, x: np.ndarray) -> tuple[MoeWeights, np.ndarray, np.ndarray]:
        """The layer's weights, its input, and FP32 router logits."""
        weights = self.weights.moe[layer]
        h = self._norm(x, weights.norm)
        return weights, h, self._wide(h) @ weights.router

    def _experts(self, weights: MoeWeights, h: np.ndarray, ids: np.ndarray, route_weights: np.ndarray) -> np.ndarray:
        return self.calls(
            "fused_moe", h, weights.w13, weights.w2, ids, route_weights, weights.shared_w13, weights.shared_w2,
            weights.shared_gate, routed_scale=self.config.routed_scale,
        )  # fmt: skip

    def _moe_preview(self, layer: int, x: np.ndarray, live: np.ndarray, cache: BlockCache) -> np.ndarray:
        """Live rows run, among the experts that the block's live rows want most; the others keep their last output."""
        c = self.config
        weights, h, logits = self._routed(layer, x)
        coreset, ids, route_weights = self.calls(
            "block_coreset", logits, _index(0, len(x)), live, k=c.experts_per_token, budget=c.expert_budget,
            mode="max" if c.is_attention(layer) else "vote", renormalize=True,
        )  # fmt: skip
        live_ids, live_weights, _, count = self.calls("live_row_routes", ids, route_weights, live)
        fresh = self._experts(weights, h, live_ids, live_weights)
        fresh[~live] = np.nan  # whatever the rows that are not live got, the merge must not look at it
        rows = cache.rows.setdefault(layer, np.zeros_like(fresh))
        out = self.calls("merge_live_rows", fresh, rows, live)

        cache.computed += int(count[0])
        cache.reused += len(x) - int(count[0])
        cache.experts += int(coreset.sum())
        cache.coresets += 1
        return self._wide(out)

    def _moe_commit(self, layer: int, x: np.ndarray) -> np.ndarray:
        """Every token through its own top-k experts."""
        weights, h, logits = self._routed(layer, x)
        ids, route_weights = self.calls("topk_softmax", logits, k=self.config.experts_per_token, renormalize=True)
        return self._wide(self._experts(weights, h, ids, route_weights))
