// gated_delta_net_gating, rms_norm_gated and rotary_embedding. Host code; the kernels are in elementwise.cu.
#pragma once

#include "plan.h"

namespace clover::native {

constexpr int kRowGroup = 8;    // elements that a thread handles at once where rows are aligned
constexpr int kNormLanes = 16;  // lanes that share a row of the norm: one group each covers 128 elements

// ---- gated_delta_net_gating ----

// Strides in elements; a and b may have any.
struct GatingParams {
  const void* a;
  const void* b;
  const float* A_log;
  const void* dt_bias;
  float* g;
  float* beta;
  int64_t a_token, a_head, b_token, b_head, g_token, beta_token;
  int64_t tokens, heads;
};

struct GatingArgs {
  DType dtype = DType::kFloat32;  // of a, b and dt_bias
  GatingParams call = {};
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

inline int plan_gated_delta_net_gating(const Machine& machine, const GatingArgs& args, Launch out[], int max,
                                       const char** why_not) {
  *why_not = nullptr;
  if (max < 1) return refuse(why_not, "room for no launch");
  const GatingParams& p = args.call;
  const int64_t count = p.tokens * p.heads;
  if (count == 0) return 0;
  bool groups = p.a_head == 1 && p.b_head == 1;
  for (const void* pointer : {p.a, p.b, p.dt_bias}) groups = groups && is_aligned(pointer);
  for (const float* pointer : {p.A_log, const_cast<const float*>(p.g), const_cast<const float*>(p.beta)})
    groups = groups && is_aligned(pointer);
  for (int64_t stride : {p.heads, p.a_token, p.b_token, p.g_token, p.beta_token})
    groups = groups && stride % kRowGroup == 0;
  groups = groups && p.heads <= kRowGroup * kBlockThreads;
  const DTypeNames names =
      groups ? CLOVER_DTYPE_NAMES("clover_portable_gating_x8") : CLOVER_DTYPE_NAMES("clover_portable_gating");
  out[0] = make_launch(names.of(args.dtype), loop_blocks(machine, count / (groups ? kRowGroup : 1)), p);
  return 1;
}

#endif

// ---- rms_norm_gated ----

// Strides in elements. With `cu_seqlens` only rows of present sequences are written, and without `z` rows are only
// converted: so it ends preview_gdn.
struct NormParams {
  const void* x;
  const void* weight;
  const void* z;
  void* y;
  int64_t x_token, x_head, z_token, z_head, y_token, y_head;
  int64_t tokens, heads, size;
  double eps;
  const int32_t* cu_seqlens;
  const int32_t* initial;
  int64_t sequences, slots;
};

struct RmsNormGatedArgs {
  DType dtype = DType::kFloat32;
  NormParams call = {};
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

namespace elementwise {

inline bool norm_in_groups(const NormParams& p) {
  for (int64_t stride : {p.size, p.x_token, p.x_head, p.y_token, p.y_head}) {
    if (stride % kRowGroup != 0) return false;
  }
  const bool gate_fits = p.z == nullptr || (p.z_token % kRowGroup == 0 && p.z_head % kRowGroup == 0 &&
                                            is_aligned(p.z) && is_aligned(p.weight));
  return gate_fits && is_aligned(p.x) && is_aligned(p.y);
}

inline Launch norm_launch(const Machine& machine, const NormParams& p, const DTypeNames& names,
                          const DTypeNames& grouped_names, DType dtype) {
  const int64_t threads = p.tokens * p.heads * kNormLanes;
  return make_launch((norm_in_groups(p) ? grouped_names : names).of(dtype), loop_blocks(machine, threads), p);
}

}  // namespace elementwise

inline int plan_rms_norm_gated(const Machine& machine, const RmsNormGatedArgs& args, Launch out[], int max,
                               const char** why_not) {
  *why_not = nullptr;
  if (max < 1) return refuse(why_not, "room for no launch");
  const NormParams& p = args.call;
  if (p.tokens * p.heads * p.size == 0) return 0;
  out[0] = elementwise::norm_launch(machine, p, CLOVER_DTYPE_NAMES("clover_portable_norm"),
                                    CLOVER_DTYPE_NAMES("clover_portable_norm_x8"), args.dtype);
  return 1;
}

#endif

// ---- rotary_embedding ----

struct RotaryParams {
  const int32_t* positions;
  void* q;
  void* k;
  const void* cos_sin;
  int64_t q_token, q_head, k_token, k_head, table_row;
  int64_t tokens, q_heads, k_heads, table_rows;
  int64_t half;  // pairs of a head
  int32_t interleaved;
};

struct RotaryArgs {
  DType dtype = DType::kFloat32;
  RotaryParams call = {};
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

inline int plan_rotary_embedding(const Machine& machine, const RotaryArgs& args, Launch out[], int max,
                                 const char** why_not) {
  *why_not = nullptr;
  if (max < 1) return refuse(why_not, "room for no launch");
  const RotaryParams& p = args.call;
  const int64_t pairs = p.tokens * (p.q_heads + p.k_heads) * p.half;
  if (pairs == 0) return 0;
  bool groups = is_aligned(p.q) && is_aligned(p.k) && is_aligned(p.cos_sin);
  for (int64_t stride : {p.half, p.q_token, p.q_head, p.k_token, p.k_head, p.table_row}) {
    groups = groups && stride % kRowGroup == 0;
  }
  const DTypeNames names =
      groups ? CLOVER_DTYPE_NAMES("clover_portable_rotary_x8") : CLOVER_DTYPE_NAMES("clover_portable_rotary");
  out[0] = make_launch(names.of(args.dtype), loop_blocks(machine, pairs / (groups ? kRowGroup : 1)), p);
  return 1;
}

#endif

}  // namespace clover::native
