// gated_delta_rule and preview_gated_delta_rule: the recurrence in FP32, token by token. Host code; the kernels are in
// delta_rule.cu.
//
// A block owns some rows of one value head of one sequence: each row of the state follows its own recurrence. A team of
// kDeltaLanes lanes holds kDeltaRows rows in registers.
#pragma once

#include "plan.h"

namespace clover::native {

constexpr int kDeltaLanes = 16;
constexpr int kDeltaRows = 4;
constexpr int kDeltaTeams = kBlockThreads / kDeltaLanes;
constexpr int kDeltaBlockRows = kDeltaTeams * kDeltaRows;
constexpr int kDeltaChunk = 16;  // tokens whose operands are in shared memory at a time: one a team to load
static_assert(kDeltaChunk == kDeltaTeams);
constexpr int kMaxHeadDim = 256;
constexpr int kSharedReads = 64;  // a block of no more tokens keeps its forward reads in shared memory

enum class DeltaMode : int32_t { kBidirectional = 0, kBlock = 1, kCausal = 2, kCommit = 3 };

// Strides in elements; the last axis has unit stride except the state's, which may have any.
struct DeltaParams {
  const void* q;
  const void* k;
  const void* v;
  const float* g;
  const float* beta;
  float* state;  // written by a commit only
  const int32_t* cu_seqlens;
  const int32_t* initial;
  const int32_t* final;  // commit only
  void* o;
  float* reads;  // [tokens, value_heads, value_dim] for longer bidirectional blocks; null when there can be none
  int64_t q_token, q_head, k_token, k_head, v_token, v_head, o_token, o_head, g_token, beta_token;
  int64_t state_slot, state_head, state_v, state_k;
  int64_t tokens, slots, sequences;
  int32_t heads, value_heads, key_dim, value_dim;
  float scale;
  int32_t l2norm;
  DeltaMode mode;
};

struct DeltaArgs {
  DType dtype = DType::kFloat32;  // of q, k, v and o
  DeltaParams call = {};          // the planner sets `reads`
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

namespace delta_rule {

inline const char* refusal(int64_t key_dim, int64_t value_dim) {
  if (key_dim > kMaxHeadDim) return "key head dimension above 256";
  if (value_dim > kMaxHeadDim) return "value head dimension above 256";
  return nullptr;
}

inline bool needs_reads(DeltaMode mode, int64_t tokens) {
  return mode == DeltaMode::kBidirectional && tokens > kSharedReads;
}

inline int64_t read_floats(DeltaMode mode, int64_t tokens, int64_t value_heads, int64_t value_dim) {
  return needs_reads(mode, tokens) ? tokens * value_heads * value_dim : 0;
}

inline int64_t blocks(const DeltaParams& p) {
  return p.sequences * p.value_heads * divide_up(p.value_dim, kDeltaBlockRows);
}

// Keys and queries of a chunk, values of a chunk, gates of a chunk, forward reads.
inline int64_t shared_floats(const DeltaParams& p, int64_t padded_key_dim) {
  const int64_t reads = p.mode == DeltaMode::kBidirectional ? kSharedReads * kDeltaBlockRows : 0;
  return kDeltaChunk * (2 * padded_key_dim + kDeltaBlockRows + 2) + reads;
}

inline Launch make(const DeltaParams& p, DType dtype) {
  const int width = p.key_dim <= 64 ? 0 : p.key_dim <= 128 ? 1 : 2;
  static const DTypeNames names[3] = {CLOVER_DTYPE_NAMES("clover_portable_delta_64"),
                                      CLOVER_DTYPE_NAMES("clover_portable_delta_128"),
                                      CLOVER_DTYPE_NAMES("clover_portable_delta_256")};
  return make_launch(names[width].of(dtype), blocks(p), p, 4 * shared_floats(p, int64_t{64} << width));
}

}  // namespace delta_rule

inline size_t preview_gated_delta_rule_workspace_bytes(const DeltaArgs& args) {
  const DeltaParams& p = args.call;
  return sizeof(float) * static_cast<size_t>(delta_rule::read_floats(p.mode, p.tokens, p.value_heads, p.value_dim));
}

inline int plan_preview_gated_delta_rule(const Machine&, const DeltaArgs& args, Launch out[], int max,
                                         const char** why_not) {
  DeltaParams p = args.call;
  *why_not = max < 1 ? "room for no launch" : delta_rule::refusal(p.key_dim, p.value_dim);
  if (*why_not == nullptr && delta_rule::blocks(p) > kMaxGrid) *why_not = "too many sequences for one launch";
  if (*why_not == nullptr && args.workspace_bytes < preview_gated_delta_rule_workspace_bytes(args)) {
    *why_not = "the workspace is too small";
  }
  if (*why_not != nullptr || delta_rule::blocks(p) == 0) return 0;
  p.reads = delta_rule::needs_reads(p.mode, p.tokens) ? static_cast<float*>(args.workspace) : nullptr;
  out[0] = delta_rule::make(p, args.dtype);
  return 1;
}

inline int plan_gated_delta_rule(const Machine& machine, const DeltaArgs& args, Launch out[], int max,
                                 const char** why_not) {
  DeltaArgs commit = args;
  commit.call.mode = DeltaMode::kCommit;
  return plan_preview_gated_delta_rule(machine, commit, out, max, why_not);
}

#endif

}  // namespace clover::native
