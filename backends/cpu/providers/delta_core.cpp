// The recurrence of the gated delta rule in FP32, for groups of rows.
#include "../support/delta.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

// Enough independent sums to hide an addition's latency, and no more than the registers hold.
constexpr int kGroup = kLanes >= 16 ? 8 : 4;
static_assert(kDeltaRows % kGroup == 0, "rows come in whole groups");

// The dot products of the group's rows with `vector`.
inline void dot_rows(const float* state, int64_t row, const float* vector, float (&dots)[kGroup]) {
  Vec sums[kGroup] = {};
  for (int64_t i = 0; i < row; i += kLanes) {
    const Vec x = load(vector + i);
    for (int r = 0; r < kGroup; ++r) sums[r] += load(state + r * row + i) * x;
  }
  for (int r = 0; r < kGroup; r += 4) sum_lanes({sums[r], sums[r + 1], sums[r + 2], sums[r + 3]}, dots + r);
}

// S <- decay S + u k, and the dot products of the new rows with q when `read`.
template <bool read>
inline void advance_rows(float* state, int64_t row, float decay, const float (&u)[kGroup], const float* k,
                         const float* q, float (&dots)[kGroup]) {
  Vec sums[kGroup] = {};
  const Vec decays = splat(decay);
  for (int64_t i = 0; i < row; i += kLanes) {
    const Vec key = load(k + i);
    const Vec query = read ? load(q + i) : Vec{};
    for (int r = 0; r < kGroup; ++r) {
      const Vec next = decays * load(state + r * row + i) + splat(u[r]) * key;
      store(state + r * row + i, next);
      if (read) sums[r] += next * query;
    }
  }
  if (!read) return;
  for (int r = 0; r < kGroup; r += 4) sum_lanes({sums[r], sums[r + 1], sums[r + 2], sums[r + 3]}, dots + r);
}

template <DeltaStep step>
void run_group(const DeltaScratch& scratch, int64_t tokens, int64_t first_row, float* out) {
  constexpr bool backwards = step == DeltaStep::kReadThenAdvance;
  constexpr bool reads_after = step == DeltaStep::kAdvanceThenRead;
  const int64_t row = scratch.row;
  float* state = scratch.state + first_row * row;
  for (int64_t i = 0; i < tokens; ++i) {
    const int64_t t = backwards ? tokens - 1 - i : i;
    const float* k = scratch.k + t * row;
    const float* q = scratch.q + t * row;
    float* token_out = out + t * scratch.values + first_row;
    float dots[kGroup];
    if (step == DeltaStep::kRead || backwards) {
      dot_rows(state, row, q, dots);
      for (int r = 0; r < kGroup; ++r) token_out[r] = (backwards ? token_out[r] : 0.0f) + dots[r];
    }
    if (step == DeltaStep::kRead) continue;

    const float decay = scratch.decay[t], beta = scratch.beta[t];
    const float* v = scratch.v + t * scratch.values + first_row;
    float u[kGroup];
    dot_rows(state, row, k, dots);
    for (int r = 0; r < kGroup; ++r) u[r] = beta * (v[r] - decay * dots[r]);
    advance_rows<reads_after>(state, row, decay, u, k, q, dots);
    if (reads_after) {
      for (int r = 0; r < kGroup; ++r) token_out[r] = dots[r];
    }
  }
}

}  // namespace

void load_state(const DeltaScratch& scratch, const StateMatrix* matrix, int64_t first, int64_t rows, int64_t K) {
  __builtin_memset(scratch.state, 0, static_cast<size_t>(scratch.values * scratch.row) * sizeof(float));
  if (matrix == nullptr) return;
  const float* from = matrix->data + first * matrix->value_stride;
  if (matrix->key_stride == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      __builtin_memcpy(scratch.state + r * scratch.row, from + r * matrix->value_stride, sizeof(float) * K);
    }
    return;
  }
  // Along the pool's unit stride.
  for (int64_t i = 0; i < K; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      scratch.state[r * scratch.row + i] = from[i * matrix->key_stride + r * matrix->value_stride];
    }
  }
}

void store_state(const DeltaScratch& scratch, const StateMatrix& matrix, int64_t first, int64_t rows, int64_t K) {
  float* to = matrix.data + first * matrix.value_stride;
  if (matrix.key_stride == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      __builtin_memcpy(to + r * matrix.value_stride, scratch.state + r * scratch.row, sizeof(float) * K);
    }
    return;
  }
  for (int64_t i = 0; i < K; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      to[i * matrix.key_stride + r * matrix.value_stride] = scratch.state[r * scratch.row + i];
    }
  }
}

void run_chunk(const DeltaScratch& scratch, int64_t tokens, DeltaStep step, float* out) {
  for (int64_t row = 0; row < scratch.values; row += kGroup) {
    switch (step) {
      case DeltaStep::kAdvanceThenRead:
        run_group<DeltaStep::kAdvanceThenRead>(scratch, tokens, row, out);
        break;
      case DeltaStep::kReadThenAdvance:
        run_group<DeltaStep::kReadThenAdvance>(scratch, tokens, row, out);
        break;
      case DeltaStep::kAdvance:
        run_group<DeltaStep::kAdvance>(scratch, tokens, row, out);
        break;
      case DeltaStep::kRead:
        run_group<DeltaStep::kRead>(scratch, tokens, row, out);
        break;
    }
  }
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
