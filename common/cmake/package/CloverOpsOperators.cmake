# Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit.
set(CloverOps_OPERATORS
    causal_conv1d
    preview_conv1d
    gated_delta_net_gating
    gated_delta_rule
    preview_gated_delta_rule
    preview_gdn
    topk_softmax
    block_coreset
    live_row_routes
    merge_live_rows
    fused_moe
    rotary_embedding
    rearrange
    cast
    rms_norm_gated
)
