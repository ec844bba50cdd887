// gated_delta_rule (commit) on NVIDIA cards: what its kernels take, and the planner that chooses among them.
//
// Host code only; the kernels are in gated_delta.cu.
#pragma once

#include <cstdint>

#include "common/kernels/native/launch.h"

namespace clover::nvidia {

// How four neighbouring values of the state are fetched at once.
enum class StateLayout : int32_t { kKeyLast = 0, kValueLast = 1, kScattered = 2 };

// Pointers are device pointers, strides count elements. The last axis of q, k, v and o has unit stride.
struct GatedDeltaParams {
  const void* q;
  const void* k;
  const void* v;
  const float* g;
  const float* beta;
  float* state;
  const int32_t* cu_seqlens;
  const int32_t* initial;
  const int32_t* final;
  void* o;
  int64_t q_token, q_head, k_token, k_head, v_token, v_head, o_token, o_head;
  int64_t g_token, g_head, beta_token, beta_head;
  int64_t state_slot, state_head, state_v, state_k;
  int64_t tokens, slots;
  int32_t sequences, heads, value_heads, key_dim, value_dim;
  float scale;
  int32_t l2norm;
  StateLayout layout;  // set by the planner
};

struct GatedDeltaArgs {
  GatedDeltaParams call;  // the planner sets layout
  native::DType dtype;    // of q, k, v and o
  int64_t max_seqlen;     // a hint; longer sequences stay correct
};

namespace gated_delta_detail {

inline StateLayout layout_of(const GatedDeltaParams& c) {
  const bool aligned = reinterpret_cast<uintptr_t>(c.state) % 16 == 0 && c.state_slot % 4 == 0 && c.state_head % 4 == 0;
  if (aligned && c.state_k == 1 && c.state_v % 4 == 0) return StateLayout::kKeyLast;
  if (aligned && c.state_v == 1 && c.state_k % 4 == 0 && c.value_dim % 4 == 0) return StateLayout::kValueLast;
  return StateLayout::kScattered;
}

// Rows of the state a thread; fewer where there are too few heads to fill the card.
struct ReplayKernel {
  native::DType dtype;
  int key_dim, rows;
  const char* name;
};

// clang-format off
#define CLOVER_REPLAY_KERNELS(X) \
  X(kBFloat16, bf16, 64, 1)   \
  X(kBFloat16, bf16, 64, 4)   \
  X(kBFloat16, bf16, 128, 1)  \
  X(kBFloat16, bf16, 128, 4)  \
  X(kFloat16, fp16, 64, 1)    \
  X(kFloat16, fp16, 64, 4)    \
  X(kFloat16, fp16, 128, 1)   \
  X(kFloat16, fp16, 128, 4)   \
  X(kFloat32, fp32, 64, 1)    \
  X(kFloat32, fp32, 64, 4)    \
  X(kFloat32, fp32, 128, 1)   \
  X(kFloat32, fp32, 128, 4)
// clang-format on

inline constexpr ReplayKernel kReplayKernels[] = {
#define CLOVER_ROW(dtype, tag, key_dim, rows) \
  {native::DType::dtype, key_dim, rows, "clover_gated_delta_replay_" #tag "_k" #key_dim "_r" #rows},
    CLOVER_REPLAY_KERNELS(CLOVER_ROW)
#undef CLOVER_ROW
};

inline constexpr int kReplayWarps = 4;

// Kernels whose blocks stay and have the next state on its way (replay_ahead).
inline constexpr int kAheadRows = 128;  // of a head, at most
inline constexpr int kAheadBlocks = 4;  // on a multiprocessor

// clang-format off
#define CLOVER_AHEAD_KERNELS(X) \
  X(kBFloat16, bf16, 64)   \
  X(kBFloat16, bf16, 128)  \
  X(kFloat16, fp16, 64)    \
  X(kFloat16, fp16, 128)   \
  X(kFloat32, fp32, 64)    \
  X(kFloat32, fp32, 128)
// clang-format on

inline constexpr ReplayKernel kAheadKernels[] = {
#define CLOVER_ROW(dtype, tag, key_dim) \
  {native::DType::dtype, key_dim, 4, "clover_gated_delta_ahead_" #tag "_k" #key_dim},
    CLOVER_AHEAD_KERNELS(CLOVER_ROW)
#undef CLOVER_ROW
};

// From a few tokens a sequence on and with about as many heads as places: else blocks that come and go, each with a
// cut, were faster on an H200.
inline bool goes_ahead(const native::Machine& machine, const GatedDeltaArgs& args) {
  const GatedDeltaParams& c = args.call;
  const int64_t longest = args.max_seqlen > 0 && args.max_seqlen < c.tokens ? args.max_seqlen : c.tokens;
  return longest >= 4 && c.tokens >= 2 * int64_t{c.sequences} && c.value_dim <= kAheadRows &&
         layout_of(c) == StateLayout::kKeyLast &&
         8 * int64_t{c.sequences} * c.value_heads >= 7 * int64_t{kAheadBlocks} * machine.multiprocessors;
}

inline native::Launch ahead_launch(const native::Machine& machine, const GatedDeltaArgs& args) {
  GatedDeltaParams params = args.call;
  params.layout = StateLayout::kKeyLast;
  native::Launch launch;
  for (const ReplayKernel& kernel : kAheadKernels) {
    if (kernel.dtype == args.dtype && kernel.key_dim == params.key_dim) launch.kernel = kernel.name;
  }
  const int64_t heads = int64_t{params.sequences} * params.value_heads, places = kAheadBlocks * machine.multiprocessors;
  launch.grid[0] = static_cast<uint32_t>(heads < places ? heads : places);
  launch.block[0] = 32 * kReplayWarps;
  launch.shared_bytes = static_cast<uint32_t>(16 * kReplayWarps * params.key_dim * 4);
  launch.set_params(params);
  return launch;
}

inline native::Launch replay_launch(const native::Machine& machine, const GatedDeltaArgs& args) {
  GatedDeltaParams params = args.call;
  const int64_t heads = int64_t{params.sequences} * params.value_heads;
  const int rows = 2 * heads >= machine.multiprocessors ? 4 : 1;  // measured on an H200
  params.layout = layout_of(params);
  if (rows == 1 && params.layout == StateLayout::kValueLast) params.layout = StateLayout::kScattered;
  native::Launch launch;
  for (const ReplayKernel& kernel : kReplayKernels) {
    if (kernel.dtype == args.dtype && kernel.key_dim == params.key_dim && kernel.rows == rows)
      launch.kernel = kernel.name;
  }
  const int tile_rows = 4 * rows * kReplayWarps;
  launch.grid[0] = static_cast<uint32_t>((params.value_dim + tile_rows - 1) / tile_rows);
  launch.grid[1] = static_cast<uint32_t>(params.value_heads);
  launch.grid[2] = static_cast<uint32_t>(params.sequences);
  launch.block[0] = 32 * kReplayWarps;
  launch.set_params(params);
  return launch;
}

}  // namespace gated_delta_detail

// Fills `launches` and returns how many; 0 with a reason when the call is not taken, and 0 without one when there is
// nothing to do.
inline int plan_gated_delta(const native::Machine& machine, const GatedDeltaArgs& args, native::Launch launches[],
                            int max_launches, const char** why_not) {
  using namespace gated_delta_detail;
  *why_not = nullptr;
  const GatedDeltaParams& params = args.call;
  if (machine.compute_capability < 80) {
    *why_not = "needs compute capability 8.0 or higher";
    return 0;
  }
  if (params.key_dim != 64 && params.key_dim != 128) {
    *why_not = "key head dimension must be 64 or 128";
    return 0;
  }
  if (max_launches < 1) {
    *why_not = "needs room for one launch";
    return 0;
  }
  if (params.sequences == 0) return 0;
  if (params.sequences > 65535 || params.value_heads > 65535) {
    *why_not = "takes at most 65535 sequences and value heads";
    return 0;
  }
  launches[0] = goes_ahead(machine, args) ? ahead_launch(machine, args) : replay_launch(machine, args);
  return 1;
}

}  // namespace clover::nvidia
