"""The float64 reference of every operator, from the equations of the operator page, sharing no code with a provider.

Arrays in, arrays out: nothing here changes its arguments. What a call mutates in place comes back as a new array.
"""

from .convolution import causal_conv1d, preview_conv1d
from .gated_delta import gated_delta_net_gating, gated_delta_rule, preview_gated_delta_rule, preview_gdn
from .layout import cast, rearrange, rotary_embedding
from .live_rows import live_row_routes, merge_live_rows
from .moe import fused_moe
from .norm import rms_norm_gated
from .routing import block_coreset, block_scores, judge_coreset, topk_softmax, topk_within

__all__ = [
    "block_coreset",
    "block_scores",
    "cast",
    "causal_conv1d",
    "fused_moe",
    "gated_delta_net_gating",
    "gated_delta_rule",
    "judge_coreset",
    "live_row_routes",
    "merge_live_rows",
    "preview_conv1d",
    "preview_gated_delta_rule",
    "preview_gdn",
    "rearrange",
    "rms_norm_gated",
    "rotary_embedding",
    "topk_softmax",
    "topk_within",
]
