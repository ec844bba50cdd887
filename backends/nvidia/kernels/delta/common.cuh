// What every kernel of the gated delta rule needs: element types, the sequence a block works on, small reductions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace clover::delta {

__device__ __forceinline__ float to_float(float x) {
  return x;
}
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ float to_float(__half x) {
  return __half2float(x);
}

template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

// Tokens of one sequence and its state slot; a negative slot stands for a zero state.
struct Sequence {
  int64_t first;
  int length;  // 0 when not sound
  int slot;
  bool sound;  // whether its indices make sense; if not, the sequence is treated as absent
};

__device__ __forceinline__ Sequence find_sequence(const int32_t* cu_seqlens, const int32_t* initial, int n,
                                                  int64_t tokens, int64_t slots) {
  const int begin = cu_seqlens[n];
  const int end = cu_seqlens[n + 1];
  const int slot = initial[n];
  const bool sound = begin >= 0 && begin <= end && end <= tokens && slot < slots;
  return {begin, sound ? end - begin : 0, slot, sound};
}

// Sums over groups of `kLanes` neighbouring lanes; every lane gets the sum.
template <int kLanes>
__device__ __forceinline__ float sum_over_lanes(float x) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

}  // namespace clover::delta
