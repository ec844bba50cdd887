// fused_moe.
#include "moe.h"
#include "portable.cuh"

namespace clover::native {
namespace {

// ---- the sort: a block lists the routes of one expert, in order ----

__device__ __forceinline__ int64_t route_id(const MoeSortParams& p, int64_t route) {
  const int64_t t = route / p.top_k;
  return p.ids[t * p.ids_row + route - t * p.top_k];
}

__device__ __forceinline__ void sort_routes(const MoeSortParams& p) {
  const int64_t expert = blockIdx.x, routes = p.tokens * p.top_k;
  int before = 0;
  for (int64_t route = threadIdx.x; route < routes; route += kBlockThreads) {
    const int64_t id = route_id(p, route);
    before += id >= 0 && id < expert;
  }
  int place = block_sum(before);
  if (threadIdx.x == 0) p.first[expert] = place;
  for (int64_t first = 0; first < routes; first += kBlockThreads) {
    const int64_t route = first + threadIdx.x;
    const bool own = route < routes && route_id(p, route) == expert;
    int total = 0;
    const int rank = block_rank(own, &total);
    if (own) p.order[place + rank] = static_cast<int32_t>(route);
    place += total;
  }
  if (threadIdx.x == 0 && expert + 1 == p.experts) p.first[p.experts] = place;
}

// ---- the products ----

// Elements [at, at + kMoeGroup) of a row, zeros beyond its end.
template <class T>
__device__ __forceinline__ void fetch(const T* row, int64_t at, int64_t depth, bool exists, bool aligned,
                                      float (&to)[kMoeGroup]) {
  if (exists && aligned && at < depth) return load_floats(row + at, to);
#pragma unroll
  for (int i = 0; i < kMoeGroup; ++i) to[i] = exists && at + i < depth ? to_float(row[at + i]) : 0.0f;
}

__device__ __forceinline__ float dot(const float4& a, const float4& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

constexpr int kStepQuads = kMoeDepth / 4;
constexpr int kRowQuads = kStepQuads + 1;  // one more, so that neighbouring rows begin in different banks
constexpr int kStepGroups = kMoeDepth / kMoeGroup;
static_assert(kMoeColumns * kStepGroups == kBlockThreads, "a thread fetches one group of each matrix");

__device__ __forceinline__ void put(float4* tile, int row, int group, const float (&values)[kMoeGroup]) {
#pragma unroll
  for (int i = 0; i < kMoeGroup / 4; ++i) {
    tile[row * kRowQuads + group * (kMoeGroup / 4) + i] =
        float4{values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]};
  }
}

// kRows rows times kMoeColumns columns at a time. With two matrices the result is silu(a b1) (a b2) in the data's type,
// with one it is a b in FP32. A thread has one column and kRows / 4 rows.
template <class T, int kRows, bool kTwo>
__device__ __forceinline__ void product(const MoeProductParams& p) {
  constexpr int kOwnRows = kRows / (kBlockThreads / kMoeColumns);
  constexpr int kMatrices = kTwo ? 2 : 1;
  CLOVER_SHARED(float4, tile_a, kRows * kRowQuads);
  CLOVER_SHARED(float4, tile_b, kMatrices * kMoeColumns * kRowQuads);

  const int64_t split = blockIdx.x % p.splits, rest = blockIdx.x / p.splits;
  const int64_t expert = rest / p.column_tiles, first_column = rest % p.column_tiles * kMoeColumns;
  const int64_t begin = p.first == nullptr ? 0 : p.first[expert];
  const int64_t rows = p.first == nullptr ? p.rows : p.first[expert + 1] - begin;

  const int fetch_row = threadIdx.x / kStepGroups, fetch_group = threadIdx.x % kStepGroups;
  const int column = threadIdx.x % kMoeColumns, row_group = threadIdx.x / kMoeColumns;
  const bool fetches_a = fetch_row < kRows;
  const bool has_b = first_column + fetch_row < p.width;
  const T* b = static_cast<const T*>(p.b) + expert * p.b_expert + (has_b ? (first_column + fetch_row) * p.b_row : 0);

  for (int64_t first_row = split * kRows; first_row < rows; first_row += p.splits * kRows) {
    const bool has_a = fetches_a && first_row + fetch_row < rows;
    int64_t a_index = has_a ? begin + first_row + fetch_row : 0;
    if (has_a && p.order != nullptr && p.first != nullptr) a_index = p.order[a_index];
    const T* a = static_cast<const T*>(p.a) + a_index / p.divisor * p.a_row;
    const bool computes = first_row + row_group * kOwnRows < rows;

    float sums[kMatrices][kOwnRows];
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) {
#pragma unroll
      for (int r = 0; r < kOwnRows; ++r) sums[m][r] = 0.0f;
    }
    float next_a[kMoeGroup], next_b[kMatrices][kMoeGroup];
    const auto fetch_step = [&](int64_t step) {
      const int64_t at = step + fetch_group * kMoeGroup;
      if (fetches_a) fetch(a, at, p.depth, has_a, p.aligned != 0, next_a);
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) fetch(b + m * p.b_second, at, p.depth, has_b, p.aligned != 0, next_b[m]);
    };
    if (p.depth > 0) fetch_step(0);
    for (int64_t step = 0; step < p.depth; step += kMoeDepth) {
      __syncthreads();  // the tiles of the step before are done with
      if (fetches_a) put(tile_a, fetch_row, fetch_group, next_a);
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) put(tile_b + m * kMoeColumns * kRowQuads, fetch_row, fetch_group, next_b[m]);
      __syncthreads();
      if (step + kMoeDepth < p.depth) fetch_step(step + kMoeDepth);
      if (!computes) continue;
      float parts[kMatrices][kOwnRows];  // a step's own sums: fewer roundings than one long sum has
#pragma unroll
      for (int quad = 0; quad < kStepQuads; ++quad) {
        float4 own_b[kMatrices];
#pragma unroll
        for (int m = 0; m < kMatrices; ++m) own_b[m] = tile_b[(m * kMoeColumns + column) * kRowQuads + quad];
#pragma unroll
        for (int r = 0; r < kOwnRows; ++r) {
          const float4 own_a = tile_a[(row_group * kOwnRows + r) * kRowQuads + quad];
#pragma unroll
          for (int m = 0; m < kMatrices; ++m) {
            parts[m][r] = (quad == 0 ? 0.0f : parts[m][r]) + dot(own_a, own_b[m]);
          }
        }
      }
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) {
#pragma unroll
        for (int r = 0; r < kOwnRows; ++r) sums[m][r] += parts[m][r];
      }
    }

    if (first_column + column >= p.width) continue;
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
      const int64_t row = first_row + row_group * kOwnRows + r;
      if (row >= rows) break;
      const int64_t route = p.first == nullptr ? row : p.order[begin + row];
      const int64_t at = route * p.c_row + first_column + column;
      if constexpr (kTwo) {
        static_cast<T*>(p.c)[at] = from_float<T>(silu(sums[0][r]) * sums[1][r]);
      } else {
        static_cast<float*>(p.c)[at] = sums[0][r];
      }
    }
  }
}

// ---- the sum over a token's routes, by one block ----

template <class T>
__device__ __forceinline__ void sum_routes(const MoeSumParams& p) {
  const int64_t t = blockIdx.x;
  float gate = 1.0f;
  if (p.shared_gate != nullptr) {
    const T* x = static_cast<const T*>(p.x) + t * p.x_row;
    float sum = 0.0f;
    for (int64_t d = threadIdx.x; d < p.hidden; d += kBlockThreads) {
      sum += to_float(x[d]) * to_float(static_cast<const T*>(p.shared_gate)[d]);
    }
    gate = sigmoid(block_sum(sum));
  }
  T* y = static_cast<T*>(p.y) + t * p.y_row;
  for (int64_t d = threadIdx.x; d < p.hidden; d += kBlockThreads) {
    float sum = 0.0f;
    for (int64_t j = 0; j < p.top_k; ++j) {
      const int64_t id = p.ids[t * p.ids_row + j];
      if (id < 0 || id >= p.experts) continue;
      sum += p.weights[t * p.weights_row + j] * p.partial[(t * p.top_k + j) * p.hidden + d];
    }
    sum *= p.routed_scale;
    if (p.shared_partial != nullptr) sum += gate * p.shared_partial[t * p.hidden + d];
    y[d] = from_float<T>(sum);
  }
}

}  // namespace
}  // namespace clover::native

CLOVER_KERNEL(clover_portable_moe_sort, clover::native::MoeSortParams) {
  clover::native::sort_routes(params);
}

#define CLOVER_MOE(tag, T)                                                             \
  CLOVER_KERNEL(clover_portable_moe_up_8_##tag, clover::native::MoeProductParams) {    \
    clover::native::product<T, clover::native::kMoeFewRows, true>(params);             \
  }                                                                                    \
  CLOVER_KERNEL(clover_portable_moe_up_32_##tag, clover::native::MoeProductParams) {   \
    clover::native::product<T, clover::native::kMoeManyRows, true>(params);            \
  }                                                                                    \
  CLOVER_KERNEL(clover_portable_moe_down_8_##tag, clover::native::MoeProductParams) {  \
    clover::native::product<T, clover::native::kMoeFewRows, false>(params);            \
  }                                                                                    \
  CLOVER_KERNEL(clover_portable_moe_down_32_##tag, clover::native::MoeProductParams) { \
    clover::native::product<T, clover::native::kMoeManyRows, false>(params);           \
  }                                                                                    \
  CLOVER_KERNEL(clover_portable_moe_sum_##tag, clover::native::MoeSumParams) {         \
    clover::native::sum_routes<T>(params);                                             \
  }
CLOVER_FOR_EACH_TYPE(CLOVER_MOE)
