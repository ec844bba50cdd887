"""The demo's sizes: a Clover network small enough for two slow cores, with the layer pattern of the real one."""

from __future__ import annotations

from dataclasses import dataclass

BYTES = 256
MASK = 256  # the token of a byte that is still noise; it is never generated


@dataclass(frozen=True)
class Config:
    """Sizes of the network (letters as in the operator guide) and of the decoding loop."""

    blocks: int = 4
    block_width: int = 32
    previews: int = 4
    seed: int = 0

    layers: int = 8
    hidden: int = 128  # D
    qk_heads: int = 2  # H
    value_heads: int = 4  # HV
    key_dim: int = 32  # K
    value_dim: int = 64  # V, unequal to K so that a mixed-up axis cannot go unseen
    conv_width: int = 4  # KC
    heads: int = 4  # A
    kv_heads: int = 2  # AKV
    head_dim: int = 32  # AD
    rotary_dim: int = 16  # RD
    experts: int = 16  # E
    experts_per_token: int = 4  # k
    expert_budget: int = 8
    expert_dim: int = 64  # I, and Is of the shared expert
    routed_scale: float = 1.5
    temperature: float = 0.7
    eps: float = 1e-6

    slots: int = 3  # S; the network's sequence lives in one, the others must never change
    slot: int = 1
    prefill_chunk: int = 256
    max_prompt: int = 2048

    @property
    def conv_channels(self) -> int:
        """C: the channels of q | k | v."""
        return 2 * self.qk_heads * self.key_dim + self.value_heads * self.value_dim

    def is_attention(self, layer: int) -> bool:
        """Three GDN layers, then one gated-attention layer, over and over."""
        return layer % 4 == 3

    def previews_by_parts(self, layer: int) -> bool:
        """The last GDN layer of each period previews operator by operator, the others through preview_gdn."""
        return layer % 4 == 2
