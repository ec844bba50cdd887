// Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit.
#include <clover/abi_ops.h>

#include "dispatch.hpp"
#include "error.hpp"

extern "C" {

int32_t clover_causal_conv1d(const clover_handle* handle, const clover_causal_conv1d_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_causal_conv1d, handle, args); });
}

int32_t clover_preview_conv1d(const clover_handle* handle, const clover_preview_conv1d_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_preview_conv1d, handle, args); });
}

int32_t clover_gated_delta_net_gating(const clover_handle* handle, const clover_gated_delta_net_gating_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_gated_delta_net_gating, handle, args); });
}

int32_t clover_gated_delta_rule(const clover_handle* handle, const clover_gated_delta_rule_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_gated_delta_rule, handle, args); });
}

int32_t clover_gated_delta_rule_workspace_size(const clover_handle* handle, const clover_gated_delta_rule_args* args, uint64_t* bytes) {
  return clover::guarded([&] { *bytes = clover::operator_workspace_size(CLOVER_OP_gated_delta_rule, handle, args); });
}

int32_t clover_preview_gated_delta_rule(const clover_handle* handle, const clover_preview_gated_delta_rule_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_preview_gated_delta_rule, handle, args); });
}

int32_t clover_preview_gated_delta_rule_workspace_size(const clover_handle* handle, const clover_preview_gated_delta_rule_args* args, uint64_t* bytes) {
  return clover::guarded([&] { *bytes = clover::operator_workspace_size(CLOVER_OP_preview_gated_delta_rule, handle, args); });
}

int32_t clover_preview_gdn(const clover_handle* handle, const clover_preview_gdn_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_preview_gdn, handle, args); });
}

int32_t clover_preview_gdn_workspace_size(const clover_handle* handle, const clover_preview_gdn_args* args, uint64_t* bytes) {
  return clover::guarded([&] { *bytes = clover::operator_workspace_size(CLOVER_OP_preview_gdn, handle, args); });
}

int32_t clover_topk_softmax(const clover_handle* handle, const clover_topk_softmax_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_topk_softmax, handle, args); });
}

int32_t clover_block_coreset(const clover_handle* handle, const clover_block_coreset_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_block_coreset, handle, args); });
}

int32_t clover_block_coreset_workspace_size(const clover_handle* handle, const clover_block_coreset_args* args, uint64_t* bytes) {
  return clover::guarded([&] { *bytes = clover::operator_workspace_size(CLOVER_OP_block_coreset, handle, args); });
}

int32_t clover_live_row_routes(const clover_handle* handle, const clover_live_row_routes_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_live_row_routes, handle, args); });
}

int32_t clover_merge_live_rows(const clover_handle* handle, const clover_merge_live_rows_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_merge_live_rows, handle, args); });
}

int32_t clover_fused_moe(const clover_handle* handle, const clover_fused_moe_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_fused_moe, handle, args); });
}

int32_t clover_fused_moe_workspace_size(const clover_handle* handle, const clover_fused_moe_args* args, uint64_t* bytes) {
  return clover::guarded([&] { *bytes = clover::operator_workspace_size(CLOVER_OP_fused_moe, handle, args); });
}

int32_t clover_rotary_embedding(const clover_handle* handle, const clover_rotary_embedding_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_rotary_embedding, handle, args); });
}

int32_t clover_rearrange(const clover_handle* handle, const clover_rearrange_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_rearrange, handle, args); });
}

int32_t clover_cast(const clover_handle* handle, const clover_cast_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_cast, handle, args); });
}

int32_t clover_rms_norm_gated(const clover_handle* handle, const clover_rms_norm_gated_args* args) {
  return clover::guarded([&] { clover::run_operator(CLOVER_OP_rms_norm_gated, handle, args); });
}

}  // extern "C"
