// gated_delta_net_gating, rms_norm_gated and rotary_embedding.
#include "elementwise.h"
#include "portable.cuh"

namespace clover::native {
namespace {

// ---- gated_delta_net_gating ----

// -exp(A_log) softplus(a + dt_bias) in double, for where a factor lies outside FP32 although the product does not.
__device__ CLOVER_NOINLINE float log_decay_exact(double A_log, double x) {
  if (x < -37.0) return static_cast<float>(-exp(A_log + x));  // softplus(x) is e^x to double precision
  const double softplus = x > 20.0 ? x : log1p(exp(x));
  return static_cast<float>(-exp(A_log) * softplus);
}

// What a head's decay needs besides its token.
struct DecayHead {
  float A_log, bias, factor;  // factor = exp(A_log)
};

__device__ __forceinline__ DecayHead decay_head(float A_log, float bias) {
  return {A_log, bias, expf(A_log)};
}

// Whether log_decay() is exact enough.
__device__ __forceinline__ bool decay_is_plain(const DecayHead& head, float a) {
  const float x = a + head.bias;
  return head.A_log > -40.0f && head.A_log < 40.0f && x > -40.0f && x < 1e6f;
}

__device__ __forceinline__ float log_decay(const DecayHead& head, float a) {
  // exp() would magnify the sum's rounding error: `rest` is what the sum left out.
  const float x = a + head.bias, shifted = x - a, rest = (a - (x - shifted)) + (head.bias - shifted);
  const float power = expf(x > 20.0f ? 20.0f : x);
  return -head.factor * (x > 20.0f ? x : log1pf(power + power * rest));
}

template <class T>
__device__ __forceinline__ void gating(const GatingParams& p) {
  const int64_t count = p.tokens * p.heads;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t t = quotient(item, p.heads), head = item - t * p.heads;
    const float a = to_float(static_cast<const T*>(p.a)[t * p.a_token + head * p.a_head]);
    const float b = to_float(static_cast<const T*>(p.b)[t * p.b_token + head * p.b_head]);
    const float bias = to_float(static_cast<const T*>(p.dt_bias)[head]);
    const DecayHead decay = decay_head(p.A_log[head], bias);
    p.g[t * p.g_token + head] =
        decay_is_plain(decay, a) ? log_decay(decay, a) : log_decay_exact(decay.A_log, static_cast<double>(a) + bias);
    p.beta[t * p.beta_token + head] = sigmoid(b);
  }
}

// Eight heads at once; a thread keeps its heads and goes through the tokens.
template <class T>
__device__ __forceinline__ void gating_groups(const GatingParams& p) {
  constexpr int kGroup = kRowGroup;
  const int64_t groups = p.heads / kGroup, rows = quotient(grid_threads(), groups);
  const int64_t row = quotient(grid_thread(), groups), first = (grid_thread() - row * groups) * kGroup;
  if (row >= rows) return;
  float A_log[kGroup], bias[kGroup];
  load_floats(p.A_log + first, A_log);
  load_floats(static_cast<const T*>(p.dt_bias) + first, bias);
  DecayHead heads[kGroup];
#pragma unroll
  for (int j = 0; j < kGroup; ++j) heads[j] = decay_head(A_log[j], bias[j]);
  // A token's inputs are on their way while the one before it is computed.
  T next_a[kGroup], next_b[kGroup];
  const auto fetch = [&](int64_t t) {
    load_elements(static_cast<const T*>(p.a) + t * p.a_token + first, next_a);
    load_elements(static_cast<const T*>(p.b) + t * p.b_token + first, next_b);
  };
  if (row < p.tokens) fetch(row);
  for (int64_t t = row; t < p.tokens; t += rows) {
    float a[kGroup], b[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) a[j] = to_float(next_a[j]), b[j] = to_float(next_b[j]);
    if (t + rows < p.tokens) fetch(t + rows);
    float g[kGroup];
    bool plain = true;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      plain = plain && decay_is_plain(heads[j], a[j]);
      g[j] = log_decay(heads[j], a[j]);
      b[j] = sigmoid(b[j]);
    }
    if (!plain) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        if (!decay_is_plain(heads[j], a[j])) g[j] = log_decay_exact(A_log[j], static_cast<double>(a[j]) + bias[j]);
      }
    }
    store_floats(p.g + t * p.g_token + first, g);
    store_floats(p.beta + t * p.beta_token + first, b);
  }
}

// ---- rms_norm_gated ----

// Whether token t's sequence takes part; always where there are no sequences.
__device__ __forceinline__ bool row_is_present(const NormParams& p, int64_t t) {
  if (p.cu_seqlens == nullptr) return true;
  const int64_t n = sequence_of(p.cu_seqlens, p.sequences, t);
  return n >= 0 && sequence_at(p.cu_seqlens, n, p.tokens).present && p.initial[n] < p.slots;
}

// The sum of squares of the team's row.
template <class X, int kGroup>
__device__ __forceinline__ float sum_of_squares(const X* x, int64_t size) {
  float sum = 0.0f;
  for (int64_t i = Team<kNormLanes>::lane() * kGroup; i < size; i += kNormLanes * kGroup) {
    float values[kGroup];
    load_floats(x + i, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) sum += values[j] * values[j];
  }
  return Team<kNormLanes>::sum(sum);
}

// The same in double, where no FP32 number's square overflows or vanishes.
template <class X, int kGroup>
__device__ CLOVER_NOINLINE double exact_sum_of_squares(const X* x, int64_t size) {
  double sum = 0.0;
  for (int64_t i = Team<kNormLanes>::lane() * kGroup; i < size; i += kNormLanes * kGroup) {
    float values[kGroup];
    load_floats(x + i, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) sum += static_cast<double>(values[j]) * values[j];
  }
  return Team<kNormLanes>::sum(sum);
}

// What a row is multiplied by, 1 / sqrt(mean of squares + eps): in FP32 unless that lies outside its range.
class NormFactor {
 public:
  // `sum` is the team's, in FP32; `exact_sum` is asked for when that overflowed or nearly vanished.
  template <class ExactSum>
  __device__ __forceinline__ NormFactor(float sum, const NormParams& p, const ExactSum& exact_sum) {
    const float mean = sum / static_cast<float>(p.size) + static_cast<float>(p.eps);
    plain_ = sum > 1e-25f && mean > 1e-25f && mean < 1e30f;
    factor_ = 1.0f / sqrtf(mean);
    if (!plain_) exact_ = 1.0 / sqrt(exact_sum() / static_cast<double>(p.size) + p.eps);
  }

  template <int kCount>
  __device__ __forceinline__ void apply(float (&x)[kCount]) const {
    if (plain_) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) x[j] *= factor_;
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) x[j] = scaled(x[j], exact_);
    }
  }

 private:
  bool plain_;
  float factor_;
  double exact_ = 1.0;
};

template <class X, class T, int kGroup>
__device__ __forceinline__ void norm_row(const NormParams& p, int64_t t, int64_t head) {
  using Row = Team<kNormLanes>;
  const X* x = static_cast<const X*>(p.x) + t * p.x_token + head * p.x_head;
  T* y = static_cast<T*>(p.y) + t * p.y_token + head * p.y_head;
  const T* z = static_cast<const T*>(p.z) + t * p.z_token + head * p.z_head;
  const T* weight = static_cast<const T*>(p.weight);
  const auto exact_sum = [&] { return exact_sum_of_squares<X, kGroup>(x, p.size); };
  const NormFactor factor(sum_of_squares<X, kGroup>(x, p.size), p, exact_sum);
  for (int64_t i = Row::lane() * kGroup; i < p.size; i += kNormLanes * kGroup) {
    float values[kGroup], gates[kGroup], weights[kGroup];
    load_floats(x + i, values);
    load_floats(z + i, gates);
    load_floats(weight + i, weights);
    factor.apply(values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) values[j] *= weights[j] * silu(gates[j]);
    store_floats(y + i, values);
  }
}

// Where rows lie in a tensor. Those of evenly spaced heads are found without a division.
struct Rows {
  int64_t token, head, heads;

  __device__ __forceinline__ bool even() const { return token == head * heads; }
  __device__ __forceinline__ int64_t operator()(int64_t row) const {
    if (even()) return row * head;
    const int64_t t = quotient(row, heads);
    return t * token + (row - t * heads) * head;
  }
};

// Gated rows of at most one group a lane: read once, the next one while this one is computed.
template <class X, class T>
__device__ __forceinline__ void norm_short_rows(const NormParams& p) {
  using Row = Team<kNormLanes>;
  const int64_t i = Row::lane() * kRowGroup, rows = p.tokens * p.heads, step = grid_threads() / kNormLanes;
  const Rows x_rows{p.x_token, p.x_head, p.heads}, z_rows{p.z_token, p.z_head, p.heads},
      y_rows{p.y_token, p.y_head, p.heads};
  const X* x = static_cast<const X*>(p.x);
  const bool mine = i < p.size;
  float weights[kRowGroup] = {};
  if (mine) load_floats(static_cast<const T*>(p.weight) + i, weights);
  X next_x[kRowGroup] = {};
  T next_z[kRowGroup] = {};
  const auto fetch = [&](int64_t row) {
    if (!mine || row >= rows) return;
    load_elements(x + x_rows(row) + i, next_x);
    load_elements(static_cast<const T*>(p.z) + z_rows(row) + i, next_z);
  };
  const int64_t start = grid_thread() / kNormLanes;
  fetch(start);
  for (int64_t row = start; row < rows; row += step) {
    float values[kRowGroup], gates[kRowGroup], sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kRowGroup; ++j) {
      values[j] = to_float(next_x[j]), gates[j] = to_float(next_z[j]);
      sum += values[j] * values[j];
    }
    fetch(row + step);
    const NormFactor factor(Row::sum(sum), p,
                            [&] { return exact_sum_of_squares<X, kRowGroup>(x + x_rows(row), p.size); });
    if (!mine || (p.cu_seqlens != nullptr && !row_is_present(p, quotient(row, p.heads)))) continue;
    factor.apply(values);
#pragma unroll
    for (int j = 0; j < kRowGroup; ++j) values[j] *= weights[j] * silu(gates[j]);
    store_floats(static_cast<T*>(p.y) + y_rows(row) + i, values);
  }
}

// Without a gate a row is only converted.
template <class X, class T, int kGroup>
__device__ __forceinline__ void convert_row(const NormParams& p, int64_t t, int64_t head) {
  const X* x = static_cast<const X*>(p.x) + t * p.x_token + head * p.x_head;
  T* y = static_cast<T*>(p.y) + t * p.y_token + head * p.y_head;
  for (int64_t i = Team<kNormLanes>::lane() * kGroup; i < p.size; i += kNormLanes * kGroup) {
    float values[kGroup];
    load_floats(x + i, values);
    store_floats(y + i, values);
  }
}

template <class X, class T, int kGroup>
__device__ __forceinline__ void norm(const NormParams& p) {
  const bool gated = p.z != nullptr;
  if (kGroup == kRowGroup && gated && p.size <= kNormLanes * kRowGroup) return norm_short_rows<X, T>(p);
  const int64_t rows = p.tokens * p.heads;
  for (int64_t row = grid_thread() / kNormLanes; row < rows; row += grid_threads() / kNormLanes) {
    const int64_t t = quotient(row, p.heads);
    if (!row_is_present(p, t)) continue;
    if (gated) {
      norm_row<X, T, kGroup>(p, t, row - t * p.heads);
    } else {
      convert_row<X, T, kGroup>(p, t, row - t * p.heads);
    }
  }
}

// ---- rotary_embedding ----

template <class T, int kGroup>
__device__ __forceinline__ void rotary(const RotaryParams& p) {
  const int64_t groups = p.half / kGroup, heads = p.q_heads + p.k_heads;
  const int64_t count = p.tokens * heads * groups;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t row = quotient(item, groups), first = (item - row * groups) * kGroup;
    const int64_t t = quotient(row, heads), head = row - t * heads;
    const int64_t position = p.positions[t];
    if (position < 0 || position >= p.table_rows) continue;
    const T* table = static_cast<const T*>(p.cos_sin) + position * p.table_row + first;
    float cosines[kGroup], sines[kGroup];
    load_floats(table, cosines);
    load_floats(table + p.half, sines);
    T* x = head < p.q_heads ? static_cast<T*>(p.q) + t * p.q_token + head * p.q_head
                            : static_cast<T*>(p.k) + t * p.k_token + (head - p.q_heads) * p.k_head;
    if (p.interleaved) {
      T* const at = x + 2 * first;
      float pairs[2 * kGroup];
      if constexpr (kGroup == 1) {  // of elements that may lie anywhere
        pairs[0] = to_float(at[0]), pairs[1] = to_float(at[1]);
      } else {
        load_floats(at, pairs);
      }
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const float x1 = pairs[2 * j], x2 = pairs[2 * j + 1];
        pairs[2 * j] = x1 * cosines[j] - x2 * sines[j];
        pairs[2 * j + 1] = x2 * cosines[j] + x1 * sines[j];
      }
      if constexpr (kGroup == 1) {
        at[0] = from_float<T>(pairs[0]), at[1] = from_float<T>(pairs[1]);
      } else {
        store_floats(at, pairs);
      }
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
  CLOVER_KERNEL(clover_portable_gating_x8_##tag, clover::native::GatingParams) {    \
    clover::native::gating_groups<T>(params);                                       \
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
