// preview_gdn on NVIDIA cards: what its kernels take, and the planner that chooses among them.
//
// Host code only; the kernels are in preview_gdn.cu, and in preview_gdn_walk.cu for what is longer than a block.
#pragma once

#include <cstdint>

#include "backends/nvidia/kernels/delta/preview_delta.h"

namespace clover::nvidia {

// Pointers are device pointers, strides count elements. The last axis of qkv, z, conv_weight and o has unit stride.
struct PreviewGdnParams {
  // state, cu_seqlens, initial, o, their strides, the sizes, scale and read; q, k, v, g, beta and l2norm are not used,
  // and `slots` is the smaller of the two pools.
  PreviewDeltaParams delta;
  const void* qkv;
  const void* a;
  const void* b;
  const void* z;            // null: no norm
  const void* conv_weight;  // [C, 4]
  const void* conv_bias;    // may be null
  const void* conv_state;
  const float* a_log;
  const void* dt_bias;
  const void* norm_weight;
  int64_t qkv_token, z_token, z_head;
  int32_t a_token, a_head, b_token, b_head;
  int64_t conv_slot;
  int32_t conv_channel, conv_column, weight_channel;
  float eps;
  // Set by the planner: a launch takes the sequences of more than `above` tokens, a block kernel those that fit its
  // width.
  int32_t above;
};
static_assert(sizeof(PreviewGdnParams) <= native::Launch::kMaxParamBytes);

struct PreviewGdnArgs {
  PreviewGdnParams call;  // the planner sets `above`
  native::DType dtype;    // of everything but a_log and the state
  int conv_width;
  int64_t max_seqlen;  // a hint; longer sequences stay correct
};

namespace preview_gdn_detail {

struct GdnKernel {
  native::DType dtype;
  int width, rows;  // blocks of one head form a cluster of 128 / rows
  const char* name;
};

// clang-format off
#define CLOVER_PREVIEW_GDN_KERNELS(X) \
  X(kBFloat16, bf16, 32, 64)   \
  X(kBFloat16, bf16, 32, 128)  \
  X(kBFloat16, bf16, 64, 64)   \
  X(kFloat16, fp16, 32, 64)    \
  X(kFloat16, fp16, 32, 128)   \
  X(kFloat16, fp16, 64, 64)
// clang-format on

inline constexpr GdnKernel kGdnKernels[] = {
#define CLOVER_ROW(dtype, tag, width, rows) \
  {native::DType::dtype, width, rows, "clover_preview_gdn_" #tag "_w" #width "_v" #rows},
    CLOVER_PREVIEW_GDN_KERNELS(CLOVER_ROW)
#undef CLOVER_ROW
};

inline constexpr int kWalkThreads = 1024;

inline int64_t shared_bytes(const GdnKernel& kernel) {
  return preview_delta_detail::block_shared_bytes(128, kernel.width, kernel.rows, 2);
}

// Whole heads where they occupy a third of the multiprocessors or more, or where the card has no clusters; otherwise
// halves (measured on an H200).
inline const GdnKernel* choose(const native::Machine& machine, const PreviewGdnArgs& args, int width) {
  const int64_t heads = int64_t{args.call.delta.sequences} * args.call.delta.value_heads;
  const bool clusters = machine.compute_capability >= 90;
  const GdnKernel* best = nullptr;
  for (const GdnKernel& kernel : kGdnKernels) {
    const bool whole = kernel.rows == 128;
    if (kernel.dtype != args.dtype || kernel.width != width || (!whole && !clusters)) continue;
    if (shared_bytes(kernel) > machine.shared_bytes_optin) continue;
    if (best == nullptr || (whole && 3 * heads >= machine.multiprocessors)) best = &kernel;
  }
  return best;
}

inline native::Launch gdn_launch(const char* kernel, int cuts, int threads, int64_t shared, PreviewGdnParams params,
                                 int above) {
  params.above = above;
  native::Launch launch;
  launch.kernel = kernel;
  launch.grid[0] = static_cast<uint32_t>(cuts);
  launch.grid[1] = static_cast<uint32_t>(params.delta.value_heads);
  launch.grid[2] = static_cast<uint32_t>(params.delta.sequences);
  launch.block[0] = static_cast<uint32_t>(threads);
  launch.shared_bytes = static_cast<uint32_t>(shared);
  launch.set_params(params);
  return launch;
}

}  // namespace preview_gdn_detail

// Fills `launches` (room for two) and returns how many; 0 with a reason when the call is not taken, and 0 without one
// when there is nothing to do. Needs no workspace.
inline int plan_preview_gdn(const native::Machine& machine, const PreviewGdnArgs& args, native::Launch launches[],
                            int max_launches, const char** why_not) {
  using namespace preview_gdn_detail;
  *why_not = nullptr;
  const PreviewGdnParams& c = args.call;
  const PreviewDeltaParams& d = c.delta;
  if (machine.compute_capability < 80) return *why_not = "needs compute capability 8.0 or higher", 0;
  if (args.dtype == native::DType::kFloat32) return *why_not = "takes BF16 and FP16, not FP32", 0;
  if (d.key_dim != 128 || d.value_dim != 128) return *why_not = "key and value head dimensions must be 128", 0;
  if (args.conv_width != 4) return *why_not = "the convolution must be 4 wide", 0;
  if (max_launches < 2) return *why_not = "needs room for two launches", 0;
  if (d.sequences > 65535 || d.value_heads > 65535)
    return *why_not = "takes at most 65535 sequences and value heads", 0;
  const int64_t longest = args.max_seqlen > 0 && args.max_seqlen < d.tokens ? args.max_seqlen : d.tokens;
  if (longest > 64) return *why_not = "sequences must not exceed 64 tokens (say so with max_seqlen)", 0;
  const bool aligned = preview_delta_detail::aligned16(d.o) && preview_delta_detail::aligned16(d.state) &&
                       d.state_k == 1 && d.o_token % 8 == 0 && d.o_head % 8 == 0 && d.state_slot % 4 == 0 &&
                       d.state_head % 4 == 0 && d.state_v % 4 == 0 && reinterpret_cast<uintptr_t>(c.qkv) % 4 == 0 &&
                       c.qkv_token % 2 == 0 && reinterpret_cast<uintptr_t>(c.conv_weight) % 8 == 0 &&
                       c.weight_channel % 4 == 0;
  if (!aligned) return *why_not = "the state must be K-last, and it, qkv, the weights and the output aligned", 0;
  if (d.sequences == 0 || d.tokens == 0) return 0;

  // The width that the hint asks for, and a walk through the sequences that are longer, if there can be any.
  const int width = longest <= 32 ? 32 : 64;
  const GdnKernel* kernel = choose(machine, args, width);
  if (kernel == nullptr) return *why_not = "too little shared memory for a block", 0;
  launches[0] = gdn_launch(kernel->name, 128 / kernel->rows, 256, shared_bytes(*kernel), c, 0);
  if (d.tokens <= width) return 1;
  const bool bf16 = args.dtype == native::DType::kBFloat16;
  launches[1] =
      gdn_launch(bf16 ? "clover_preview_gdn_walk_bf16" : "clover_preview_gdn_walk_fp16", 1, kWalkThreads, 0, c, width);
  return 2;
}

}  // namespace clover::nvidia
