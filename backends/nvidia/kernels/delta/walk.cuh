// The preview read straight from its definition, token by token, in FP32: any length, any strides, any value dimension.
//
// A warp holds four rows of the state, eight lanes to a row. It serves FP32 data, unaligned or V-last tensors, and
// sequences that are longer than a block kernel was chosen for; speed is not its purpose.
#pragma once

#include "backends/nvidia/kernels/delta/common.cuh"
#include "backends/nvidia/kernels/delta/preview_delta.h"

namespace clover::delta {

inline constexpr int kWalkRows = 4;
inline constexpr int kWalkSegment = 64;  // outputs of the forward walk that wait in shared memory for the reverse one

template <class T, int kKeyDim>
struct Walk {
  static constexpr int kValues = kKeyDim / 8;  // per lane: kValues/4 groups of four neighbours

  const nvidia::PreviewDeltaParams& p;
  const T* q;
  const T* k;
  const T* v;
  const float* g;
  const float* beta;
  int lane8;

  __device__ static int column(int i, int lane8) { return (i / 4) * 32 + lane8 * 4 + i % 4; }

  __device__ float load_normalised(float (&x)[kValues], const T* row) const {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      x[i] = to_float(row[column(i, lane8)]);
      squares = fmaf(x[i], x[i], squares);
    }
    return p.l2norm ? rsqrtf(sum_over_lanes<8>(squares) + 1e-6f) : 1.0f;
  }

  __device__ void advance(float (&state)[kValues], int64_t t) const {
    float x[kValues];
    const float norm = load_normalised(x, k + t * p.k_token);
    const float decay = expf(g[t * p.g_token]);
    float along = 0.0f;
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      x[i] *= norm;
      state[i] *= decay;
      along = fmaf(state[i], x[i], along);
    }
    along = sum_over_lanes<8>(along);
    const float u = beta[t * p.beta_token] * (to_float(v[t * p.v_token]) - along);
#pragma unroll
    for (int i = 0; i < kValues; ++i) state[i] = fmaf(u, x[i], state[i]);
  }

  __device__ float read(const float (&state)[kValues], int64_t t) const {
    float x[kValues];
    const float norm = load_normalised(x, q + t * p.q_token);
    float along = 0.0f;
#pragma unroll
    for (int i = 0; i < kValues; ++i) along = fmaf(state[i], x[i] * norm, along);
    return p.scale * sum_over_lanes<8>(along);
  }
};

// One warp, rows `row` of value head `head` (one row per group of eight lanes; groups past the end repeat the last row
// and store nothing). `waiting` is kWalkSegment * kWalkRows floats of shared memory of this warp's own.
template <class T, int kKeyDim>
__device__ __noinline__ void walk_rows(const nvidia::PreviewDeltaParams& p, Sequence sequence, int head, int first_row,
                                       float* waiting) {
  using W = Walk<T, kKeyDim>;
  const int lane = threadIdx.x % 32;
  const int group = lane / 8;
  const bool stores = first_row + group < p.value_dim && lane % 8 == 0;
  const int row = min(first_row + group, p.value_dim - 1);
  const int key_head = head / (p.value_heads / p.heads);
  const W walk{p,
               static_cast<const T*>(p.q) + sequence.first * p.q_token + key_head * p.q_head,
               static_cast<const T*>(p.k) + sequence.first * p.k_token + key_head * p.k_head,
               static_cast<const T*>(p.v) + sequence.first * p.v_token + head * p.v_head + row,
               p.g + sequence.first * p.g_token + head * p.g_head,
               p.beta + sequence.first * p.beta_token + head * p.beta_head,
               lane % 8};
  T* out = static_cast<T*>(p.o) + sequence.first * p.o_token + head * p.o_head + row;
  const int length = sequence.length;

  float state[W::kValues];
  auto load_state = [&] {
    const float* pool = p.state + sequence.slot * p.state_slot + head * p.state_head + row * p.state_v;
#pragma unroll
    for (int i = 0; i < W::kValues; ++i) {
      state[i] = sequence.slot < 0 ? 0.0f : pool[W::column(i, lane % 8) * p.state_k];
    }
  };

  if (p.read != nvidia::DeltaRead::kBidirectional) {
    load_state();
    const bool causal = p.read == nvidia::DeltaRead::kCausal;
    for (int64_t t = 0; t < length; ++t) {
      walk.advance(state, t);
      if (!causal) continue;
      const float o = walk.read(state, t);
      if (stores) out[t * p.o_token] = from_float<T>(o);
    }
    for (int64_t t = 0; t < length && !causal; ++t) {
      const float o = walk.read(state, t);
      if (stores) out[t * p.o_token] = from_float<T>(o);
    }
    return;
  }

  // Segments from the last to the first: the reverse state lives on from one to the next, the forward one is walked
  // again from the start, so that nothing but the output is ever written.
  float reverse[W::kValues];
#pragma unroll
  for (int i = 0; i < W::kValues; ++i) reverse[i] = 0.0f;
  for (int begin = (length - 1) / kWalkSegment * kWalkSegment; begin >= 0; begin -= kWalkSegment) {
    const int end = min(begin + kWalkSegment, length);
    load_state();
    for (int64_t t = 0; t < end; ++t) {
      walk.advance(state, t);
      if (t < begin) continue;
      const float o = walk.read(state, t);
      if (lane % 8 == 0) waiting[(t - begin) * kWalkRows + group] = o;
    }
    for (int64_t t = end - 1; t >= begin; --t) {
      const float o = walk.read(reverse, t);
      if (stores) out[t * p.o_token] = from_float<T>(waiting[(t - begin) * kWalkRows + group] + o);
      walk.advance(reverse, t);
    }
  }
}

}  // namespace clover::delta
