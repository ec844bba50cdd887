// gated_delta_net_gating, rms_norm_gated and rotary_embedding.
#include "elementwise.h"
#include "portable.cuh"

namespace clover::native {
namespace {

// ---- gated_delta_net_gating ----

// In double: where the decay is the product of a huge and a tiny number, FP32 would lose it.
__device__ __forceinline__ float log_decay(double A_log, double x) {
  if (x < -37.0) return static_cast<float>(-exp(A_log + x));  // softplus(x) is e^x to double precision
  const double softplus = x > 20.0 ? x : log1p(exp(x));
  return static_cast<float>(-exp(A_log) * softplus);
}

template <class T>
__device__ __forceinline__ void gating(const GatingParams& p) {
  const int64_t count = p.tokens * p.heads;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t t = item / p.heads, head = item - t * p.heads;
    const float a = to_float(static_cast<const T*>(p.a)[t * p.a_token + head * p.a_head]);
    const float b = to_float(static_cast<const T*>(p.b)[t * p.b_token + head * p.b_head]);
    const double x = static_cast<double>(a) + to_float(static_cast<const T*>(p.dt_bias)[head]);
    p.g[t * p.g_token + head] = log_decay(p.A_log[head], x);
    p.beta[t * p.beta_token + head] = static_cast<float>(1.0 / (1.0 + exp(-static_cast<double>(b))));
  }
}

// ---- rms_norm_gated ----

// The sum of squares of the team's row. In double no FP32 number's square overflows or vanishes.
template <class X, int kGroup>
__device__ __forceinline__ double sum_of_squares(const X* x, int64_t size) {
  using Row = Team<kNormLanes>;
  float sum = 0.0f;
  for (int64_t i = Row::lane() * kGroup; i < size; i += kNormLanes * kGroup) {
    float values[kGroup];
    load_floats(x + i, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) sum += values[j] * values[j];
  }
  sum = Row::sum(sum);
  if (sum > 1e-25f && sum < 1e30f) return sum;
  double exact = 0.0;
  for (int64_t i = Row::lane() * kGroup; i < size; i += kNormLanes * kGroup) {
    float values[kGroup];
    load_floats(x + i, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) exact += static_cast<double>(values[j]) * values[j];
  }
  return Row::sum(exact);
}

template <class X, class T, int kGroup>
__device__ __forceinline__ void norm_row(const NormParams& p, int64_t t, int64_t head) {
  using Row = Team<kNormLanes>;
  const X* x = static_cast<const X*>(p.x) + t * p.x_token + head * p.x_head;
  T* y = static_cast<T*>(p.y) + t * p.y_token + head * p.y_head;
  const bool gated = p.z != nullptr;
  const T* z = gated ? static_cast<const T*>(p.z) + t * p.z_token + head * p.z_head : nullptr;
  const T* weight = static_cast<const T*>(p.weight);
  double factor = 1.0;
  if (gated) factor = 1.0 / sqrt(sum_of_squares<X, kGroup>(x, p.size) / static_cast<double>(p.size) + p.eps);
  for (int64_t i = Row::lane() * kGroup; i < p.size; i += kNormLanes * kGroup) {
    float values[kGroup];
    load_floats(x + i, values);
    if (gated) {
      float gates[kGroup], weights[kGroup];
      load_floats(z + i, gates);
      load_floats(weight + i, weights);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) values[j] = scaled(values[j], factor) * weights[j] * silu(gates[j]);
    }
    store_floats(y + i, values);
  }
}

template <class X, class T, int kGroup>
__device__ __forceinline__ void norm(const NormParams& p) {
  const int64_t rows = p.tokens * p.heads;
  for (int64_t row = grid_thread() / kNormLanes; row < rows; row += grid_threads() / kNormLanes) {
    const int64_t t = row / p.heads;
    if (p.cu_seqlens != nullptr) {
      const int64_t n = sequence_of(p.cu_seqlens, p.sequences, t);
      if (n < 0 || !sequence_at(p.cu_seqlens, n, p.tokens).present || p.initial[n] >= p.slots) continue;
    }
    norm_row<X, T, kGroup>(p, t, row - t * p.heads);
  }
}

// ---- rotary_embedding ----

template <class T, int kGroup>
__device__ __forceinline__ void rotary(const RotaryParams& p) {
  const int64_t groups = p.half / kGroup, heads = p.q_heads + p.k_heads;
  const int64_t count = p.tokens * heads * groups;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t row = item / groups, first = (item - row * groups) * kGroup;
    const int64_t t = row / heads, head = row - t * heads;
    const int64_t position = p.positions[t];
    if (position < 0 || position >= p.table_rows) continue;
    const T* table = static_cast<const T*>(p.cos_sin) + position * p.table_row + first;
    float cosines[kGroup], sines[kGroup];
    load_floats(table, cosines);
    load_floats(table + p.half, sines);
    T* x = head < p.q_heads ? static_cast<T*>(p.q) + t * p.q_token + head * p.q_head
                            : static_cast<T*>(p.k) + t * p.k_token + (head - p.q_heads) * p.k_head;
    if (p.interleaved) {
      float pairs[2 * kGroup];
      load_floats(x + 2 * first, pairs);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const float x1 = pairs[2 * j], x2 = pairs[2 * j + 1];
        pairs[2 * j] = x1 * cosines[j] - x2 * sines[j];
        pairs[2 * j + 1] = x2 * cosines[j] + x1 * sines[j];
      }
      store_floats(x + 2 * first, pairs);
    } else {
      float x1[kGroup], x2[kGroup], y1[kGroup], y2[kGroup];
      load_floats(x + first, x1);
      load_floats(x + p.half + first, x2);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        y1[j] = x1[j] * cosines[j] - x2[j] * sines[j];
        y2[j] = x2[j] * cosines[j] + x1[j] * sines[j];
      }
      store_floats(x + first, y1);
      store_floats(x + p.half + first, y2);
    }
  }
}

}  // namespace
}  // namespace clover::native

#define CLOVER_ELEMENTWISE(tag, T)                                                  \
  CLOVER_KERNEL(clover_portable_gating_##tag, clover::native::GatingParams) {       \
    clover::native::gating<T>(params);                                              \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_norm_##tag, clover::native::NormParams) {           \
    clover::native::norm<T, T, 1>(params);                                          \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_norm_x8_##tag, clover::native::NormParams) {        \
    clover::native::norm<T, T, clover::native::kRowGroup>(params);                  \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_norm_of_f32_##tag, clover::native::NormParams) {    \
    clover::native::norm<float, T, 1>(params);                                      \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_norm_of_f32_x8_##tag, clover::native::NormParams) { \
    clover::native::norm<float, T, clover::native::kRowGroup>(params);              \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_rotary_##tag, clover::native::RotaryParams) {       \
    clover::native::rotary<T, 1>(params);                                           \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_rotary_x8_##tag, clover::native::RotaryParams) {    \
    clover::native::rotary<T, clover::native::kRowGroup>(params);                   \
  }
CLOVER_FOR_EACH_TYPE(CLOVER_ELEMENTWISE)
