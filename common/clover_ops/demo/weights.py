"""Seeded random weights. Parameters are BF16; those of NumPy's linear layers hold BF16 values in FP32 arrays."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from .config import BYTES, Config

BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass
class GdnWeights:
    """One GDN layer: projections, short convolution, gates, gated norm."""

    norm: np.ndarray
    qkv: np.ndarray
    z: np.ndarray
    ba: np.ndarray  # columns b0 a0 b1 a1 …: a and b are interleaved views of its product
    conv: np.ndarray
    conv_bias: np.ndarray
    a_log: np.ndarray
    dt_bias: np.ndarray
    out_norm: np.ndarray
    out: np.ndarray


@dataclass
class AttentionWeights:
    """One gated-attention layer."""

    norm: np.ndarray
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    gate: np.ndarray
    out: np.ndarray


@dataclass
class MoeWeights:
    """Router, routed experts, shared expert."""

    norm: np.ndarray
    router: np.ndarray
    w13: np.ndarray
    w2: np.ndarray
    shared_w13: np.ndarray
    shared_w2: np.ndarray
    shared_gate: np.ndarray


@dataclass
class Weights:
    """The whole network, by layer."""

    embedding: np.ndarray
    gdn: dict[int, GdnWeights]
    attention: dict[int, AttentionWeights]
    moe: dict[int, MoeWeights]
    final_norm: np.ndarray


class _Source:
    """Draws parameters from one seeded generator."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def bf16(self, *shape: int, scale: float | None = None) -> np.ndarray:
        """Normal values, of variance 1 / (last axis) unless `scale` says otherwise."""
        scale = shape[-1] ** -0.5 if scale is None else scale
        return (self.random.standard_normal(shape) * scale).astype(np.float32).astype(BF16)

    def linear(self, inputs: int, outputs: int) -> np.ndarray:
        """A matrix for `x @ w`."""
        return self.bf16(inputs, outputs, scale=inputs**-0.5).astype(np.float32)

    def norm(self, size: int) -> np.ndarray:
        """A norm's weight, near one."""
        return (1 + 0.1 * self.random.standard_normal(size)).astype(np.float32).astype(BF16)

    def uniform(self, low: float, high: float, size: int) -> np.ndarray:
        return self.random.uniform(low, high, size).astype(np.float32)


def _gdn(config: Config, source: _Source) -> GdnWeights:
    values = config.value_heads * config.value_dim
    step = source.uniform(0.01, 0.2, config.value_heads)
    return GdnWeights(
        norm=source.norm(config.hidden),
        qkv=source.linear(config.hidden, config.conv_channels),
        z=source.linear(config.hidden, values),
        ba=source.linear(config.hidden, 2 * config.value_heads),
        conv=source.bf16(config.conv_channels, config.conv_width),
        conv_bias=source.bf16(config.conv_channels, scale=0.05),
        a_log=np.log(source.uniform(1, 8, config.value_heads)),
        dt_bias=np.log(np.expm1(step)).astype(BF16),  # softplus(dt_bias) is about `step`
        out_norm=source.norm(config.value_dim),
        out=source.linear(values, config.hidden),
    )


def _attention(config: Config, source: _Source) -> AttentionWeights:
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
    return AttentionWeights(
        norm=source.norm(config.hidden),
        q=source.linear(config.hidden, queries),
        k=source.linear(config.hidden, keys),
        v=source.linear(config.hidden, keys),
        gate=source.linear(config.hidden, queries),
        out=source.linear(queries, config.hidden),
    )


def _moe(config: Config, source: _Source) -> MoeWeights:
    return MoeWeights(
        norm=source.norm(config.hidden),
        router=source.linear(config.hidden, config.experts),
        w13=source.bf16(config.experts, 2 * config.expert_dim, config.hidden),
        w2=source.bf16(config.experts, config.hidden, config.expert_dim),
        shared_w13=source.bf16(2 * config.expert_dim, config.hidden),
        shared_w2=source.bf16(config.hidden, config.expert_dim),
        shared_gate=source.bf16(config.hidden),
    )


def make_weights(config: Config) -> Weights:
    """Weights of the whole network, the same for the same seed."""
    source = _Source(config.seed)
    embedding = source.bf16(BYTES + 1, config.hidden, scale=1.0).astype(np.float32)
    weights = Weights(embedding, {}, {}, {}, source.norm(config.hidden))
    for layer in range(config.layers):
        if config.is_attention(layer):
            weights.attention[layer] = _attention(config, source)
        else:
            weights.gdn[layer] = _gdn(config, source)
        weights.moe[layer] = _moe(config, source)
    return weights


def rotary_table(config: Config, positions: int) -> np.ndarray:
    """cos_sin [positions, RD] in BF16: RD/2 cosines, then RD/2 sines."""
    frequency = 10000.0 ** (-np.arange(config.rotary_dim // 2) * 2 / config.rotary_dim)
    angle = np.arange(positions)[:, None] * frequency
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32).astype(BF16)
