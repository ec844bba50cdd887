// preview_gated_delta_rule on NVIDIA cards: what its kernels take, and the planner that chooses among them.
//
// Host code only; the kernels are in preview_delta.cu.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "common/kernels/native/launch.h"

namespace clover::nvidia {

enum class DeltaRead : int32_t { kBidirectional = 0, kBlock = 1, kCausal = 2 };

// Pointers are device pointers, strides count elements. The last axis of q, k, v and o has unit stride.
struct PreviewDeltaParams {
  const void* q;
  const void* k;
  const void* v;
  const float* g;
  const float* beta;
  const float* state;
  const int32_t* cu_seqlens;
  const int32_t* initial;
  void* o;
  int64_t q_token, q_head, k_token, k_head, v_token, v_head, o_token, o_head;
  int64_t g_token, g_head, beta_token, beta_head;
  int64_t state_slot, state_head, state_v, state_k;
  int64_t tokens, slots;
  int32_t sequences, heads, value_heads, key_dim, value_dim;
  float scale;
  int32_t l2norm;
  DeltaRead read;
};

struct PreviewDeltaArgs {
  PreviewDeltaParams call;
  native::DType dtype;  // of q, k, v and o
  int64_t max_seqlen;   // a hint; longer sequences stay correct
};

namespace preview_delta_detail {

inline bool aligned16(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

// The block kernels move 16 bytes at a time: 8 values of 16 bits, 4 floats of the state.
inline bool block_kernel_takes(const PreviewDeltaArgs& args) {
  const PreviewDeltaParams& c = args.call;
  if (args.dtype == native::DType::kFloat32) return false;
  if (c.key_dim != 64 && c.key_dim != 128) return false;
  if (c.value_dim % 32 != 0 || c.state_k != 1) return false;
  if (!aligned16(c.q) || !aligned16(c.k) || !aligned16(c.v) || !aligned16(c.o) || !aligned16(c.state)) return false;
  for (int64_t stride : {c.q_token, c.q_head, c.k_token, c.k_head, c.v_token, c.v_head, c.o_token, c.o_head}) {
    if (stride % 8 != 0) return false;
  }
  return c.state_slot % 4 == 0 && c.state_head % 4 == 0 && c.state_v % 4 == 0;
}

// Shared memory of preview_block<key_dim, width, rows, splits>; preview_block.cuh asserts that it agrees.
inline constexpr int64_t block_shared_bytes(int key_dim, int width, int rows, int splits) {
  return int64_t{4} * rows * key_dim                         // the state tile
         + int64_t{2} * splits * 2 * width * (key_dim + 16)  // k and q
         + int64_t{2} * splits * width * (rows + 8)          // v
         + int64_t{4} * 3 * width * (width + 8)              // the triangular systems and their right sides
         + int64_t{4} * (width + 1) * (width + 4)            // decays
         + int64_t{4} * 4 * width;                           // g, beta and the two norms
}

struct BlockKernel {
  native::DType dtype;
  int splits;  // BF16 terms that hold one value of q, k or v exactly
  int key_dim, width, rows;
  const char* name;
};

// clang-format off
#define CLOVER_PREVIEW_BLOCK_KERNELS(X) \
  X(kBFloat16, bf16, 1, 128, 16, 32)   \
  X(kBFloat16, bf16, 1, 128, 32, 32)   \
  X(kBFloat16, bf16, 1, 128, 64, 32)   \
  X(kBFloat16, bf16, 1, 128, 16, 128)  \
  X(kBFloat16, bf16, 1, 128, 32, 128)  \
  X(kBFloat16, bf16, 1, 128, 64, 128)  \
  X(kBFloat16, bf16, 1, 64, 16, 32)    \
  X(kBFloat16, bf16, 1, 64, 32, 32)    \
  X(kBFloat16, bf16, 1, 64, 64, 32)    \
  X(kFloat16, fp16, 2, 128, 16, 32)    \
  X(kFloat16, fp16, 2, 128, 32, 32)    \
  X(kFloat16, fp16, 2, 128, 64, 32)    \
  X(kFloat16, fp16, 2, 64, 16, 32)     \
  X(kFloat16, fp16, 2, 64, 32, 32)     \
  X(kFloat16, fp16, 2, 64, 64, 32)
// clang-format on

inline constexpr BlockKernel kBlockKernels[] = {
#define CLOVER_ROW(dtype, tag, splits, key_dim, width, rows) \
  {native::DType::dtype,                                     \
   splits,                                                   \
   key_dim,                                                  \
   width,                                                    \
   rows,                                                     \
   "clover_preview_delta_" #tag "_k" #key_dim "_w" #width "_v" #rows},
    CLOVER_PREVIEW_BLOCK_KERNELS(CLOVER_ROW)
#undef CLOVER_ROW
};

inline const char* walk_kernel_name(native::DType dtype, int key_dim) {
  const bool narrow = key_dim == 64;
  switch (dtype) {
    case native::DType::kBFloat16:
      return narrow ? "clover_preview_delta_walk_bf16_k64" : "clover_preview_delta_walk_bf16_k128";
    case native::DType::kFloat16:
      return narrow ? "clover_preview_delta_walk_fp16_k64" : "clover_preview_delta_walk_fp16_k128";
    default:
      return narrow ? "clover_preview_delta_walk_fp32_k64" : "clover_preview_delta_walk_fp32_k128";
  }
}

// Whole heads where they occupy a third of the multiprocessors or more; with fewer, heads are cut and each piece
// repeats the small products (measured on an H200).
inline const BlockKernel* choose_block_kernel(const native::Machine& machine, const PreviewDeltaArgs& args) {
  if (!block_kernel_takes(args)) return nullptr;
  const PreviewDeltaParams& c = args.call;
  const int64_t longest = args.max_seqlen > 0 && args.max_seqlen < c.tokens ? args.max_seqlen : c.tokens;
  const int width = longest <= 16 ? 16 : longest <= 32 ? 32 : 64;
  const BlockKernel* best = nullptr;
  for (const BlockKernel& kernel : kBlockKernels) {
    if (kernel.dtype != args.dtype || kernel.key_dim != c.key_dim || kernel.width != width) continue;
    if (c.value_dim % kernel.rows != 0) continue;
    if (block_shared_bytes(kernel.key_dim, kernel.width, kernel.rows, kernel.splits) > machine.shared_bytes_optin)
      continue;
    const int64_t blocks = int64_t{c.sequences} * c.value_heads * (c.value_dim / kernel.rows);
    if (best == nullptr || (kernel.rows > best->rows && 3 * blocks >= machine.multiprocessors)) best = &kernel;
  }
  return best;
}

}  // namespace preview_delta_detail

// Fills `launches` (one suffices) and returns how many; 0 with a reason when the call is not taken, and 0 without one
// when there is nothing to do.
inline int plan_preview_delta(const native::Machine& machine, const PreviewDeltaArgs& args, native::Launch launches[],
                              int max_launches, const char** why_not) {
  using namespace preview_delta_detail;
  *why_not = nullptr;
  const PreviewDeltaParams& params = args.call;
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
  if (params.sequences == 0 || params.tokens == 0) return 0;
  if (params.sequences > 65535 || params.value_heads > 65535) {
    *why_not = "takes at most 65535 sequences and value heads";
    return 0;
  }
  native::Launch& launch = launches[0];
  launch = native::Launch{};
  launch.grid[1] = static_cast<uint32_t>(params.value_heads);
  launch.grid[2] = static_cast<uint32_t>(params.sequences);
  launch.block[0] = 256;
  launch.set_params(params);
  if (const BlockKernel* kernel = choose_block_kernel(machine, args)) {
    launch.kernel = kernel->name;
    launch.grid[0] = static_cast<uint32_t>(params.value_dim / kernel->rows);
    launch.shared_bytes =
        static_cast<uint32_t>(block_shared_bytes(kernel->key_dim, kernel->width, kernel->rows, kernel->splits));
  } else {
    launch.kernel = walk_kernel_name(args.dtype, params.key_dim);
    launch.grid[0] = static_cast<uint32_t>((params.value_dim + 31) / 32);
  }
  return 1;
}

}  // namespace clover::nvidia
