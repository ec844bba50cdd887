// What a variant of the kernels offers: one function per operator, and how much scratch some of them take.
#pragma once

#include <clover/plugin.h>

#define CLOVER_CPU_OPERATORS(X) \
  X(causal_conv1d)              \
  X(preview_conv1d)             \
  X(gated_delta_net_gating)     \
  X(gated_delta_rule)           \
  X(preview_gated_delta_rule)   \
  X(preview_gdn)                \
  X(topk_softmax)               \
  X(block_coreset)              \
  X(live_row_routes)            \
  X(merge_live_rows)            \
  X(fused_moe)                  \
  X(rotary_embedding)           \
  X(rearrange)                  \
  X(cast)                       \
  X(rms_norm_gated)

#define CLOVER_CPU_WORKSPACE_OPERATORS(X) \
  X(gated_delta_rule)                     \
  X(preview_gated_delta_rule)             \
  X(preview_gdn)                          \
  X(block_coreset)                        \
  X(fused_moe)

namespace clover::cpu {

struct Kernels {
#define CLOVER_CPU_MEMBER(op) void (*op)(const clover_call&, const clover_##op##_args&, const clover_##op##_dims&);
  CLOVER_CPU_OPERATORS(CLOVER_CPU_MEMBER)
#undef CLOVER_CPU_MEMBER
#define CLOVER_CPU_MEMBER(op) uint64_t (*op##_workspace)(const clover_##op##_args&, const clover_##op##_dims&);
  CLOVER_CPU_WORKSPACE_OPERATORS(CLOVER_CPU_MEMBER)
#undef CLOVER_CPU_MEMBER
};

}  // namespace clover::cpu
