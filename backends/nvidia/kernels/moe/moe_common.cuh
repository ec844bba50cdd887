// What the kernels of the mixture of experts share: element types, routes, and the weighted sum.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "backends/nvidia/kernels/moe/fused_moe.h"
#include "backends/nvidia/kernels/ptx.cuh"

namespace clover::nvidia::moe {

template <class T>
__device__ __forceinline__ float to_float(T value);
template <>
__device__ __forceinline__ float to_float(float value) {
  return value;
}
template <>
__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
template <>
__device__ __forceinline__ float to_float(__half value) {
  return __half2float(value);
}

template <class T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float(float value) {
  return value;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ __forceinline__ __half from_float(float value) {
  return __float2half_rn(value);
}

template <class T>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ __forceinline__ void mma<__nv_bfloat16>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  ptx::mma_bf16(d, a, b0, b1);
}
template <>
__device__ __forceinline__ void mma<__half>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  ptx::mma_f16(d, a, b0, b1);
}

__device__ __forceinline__ float silu(float x) {
  return x / (1.0f + __expf(-x));
}

__device__ __forceinline__ int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}
constexpr int ceil_div_constant(int a, int b) {
  return (a + b - 1) / b;
}

// One expert's two matrices, the shared expert among them.
template <class T>
struct Expert {
  const T *w13, *w2;
  int64_t w13_row, w2_row;
  int intermediate;
  bool shared;
};

template <class T>
__device__ __forceinline__ Expert<T> find_expert(const MoeParams& p, int expert) {
  if (expert == p.experts) {
    return {static_cast<const T*>(p.shared_w13),
            static_cast<const T*>(p.shared_w2),
            p.shared_w13_row,
            p.shared_w2_row,
            p.shared_intermediate,
            true};
  }
  return {static_cast<const T*>(p.w13) + expert * p.w13_expert,
          static_cast<const T*>(p.w2) + expert * p.w2_expert,
          p.w13_row,
          p.w2_row,
          p.intermediate,
          false};
}

// Eight columns of y for one token, by one lane; the routes are added in their order, then the shared expert.
// `await_partials` returns when the routes' outputs are there; the routes themselves are loaded before.
template <class T, class Await>
__device__ void sum_routes(const MoeParams& p, int token, int column_block, int lane, Await await_partials) {
  const int column = column_block * 256 + lane * 8;
  const bool inside = column < p.hidden;
  float sum[8] = {};
  if (p.top_k == 0) await_partials();
  for (int j0 = 0; j0 < p.top_k; j0 += 32) {
    int id = -1;
    float weight = 0.0f;
    if (j0 + lane < p.top_k) {
      id = p.ids[token * p.ids_row + j0 + lane];
      weight = p.weights[token * p.weights_row + j0 + lane];
      if (id >= p.experts) id = -1;
    }
    if (j0 == 0) await_partials();
    const int routes = min(32, p.top_k - j0);
    const float* rows = p.partial + (static_cast<int64_t>(token) * p.top_k + j0) * p.hidden + column;
    for (int j8 = 0; j8 < routes; j8 += 8) {
      uint4 part[8][2];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const bool there = __shfl_sync(~0u, id, j8 + j) >= 0 && inside;
        part[j][0] = ptx::load_global_16(rows + static_cast<int64_t>(j8 + j) * p.hidden, there);
        part[j][1] = ptx::load_global_16(rows + static_cast<int64_t>(j8 + j) * p.hidden + 4, there);
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (__shfl_sync(~0u, id, j8 + j) < 0) continue;
        const float scale = __shfl_sync(~0u, weight, j8 + j);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          sum[half * 4 + 0] += scale * __uint_as_float(part[j][half].x);
          sum[half * 4 + 1] += scale * __uint_as_float(part[j][half].y);
          sum[half * 4 + 2] += scale * __uint_as_float(part[j][half].z);
          sum[half * 4 + 3] += scale * __uint_as_float(part[j][half].w);
        }
      }
    }
  }
  if (!inside) return;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum[i] *= p.routed_scale;
  if (p.shared_entries > 0) {
    const float gate = p.gates[token];
    const float* row = p.shared_partial + static_cast<int64_t>(token) * p.hidden + column;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] += gate * __ldcg(row + i);
  }
  T* out = static_cast<T*>(p.y) + token * p.y_row + column;
  alignas(16) T rounded[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) rounded[i] = from_float<T>(sum[i]);
  if (reinterpret_cast<uintptr_t>(out) % 16 == 0) {
    *reinterpret_cast<uint4*>(out) = *reinterpret_cast<const uint4*>(rounded);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = rounded[i];
  }
}

}  // namespace clover::nvidia::moe
