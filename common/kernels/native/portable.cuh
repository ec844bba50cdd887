// What the kernels of this folder need from a GPU, in one place: they compile for CUDA, for HIP and for the SIMT
// harness of tests/simt, and never assume how many lanes a warp has.
#pragma once

#include "plan.h"

#if defined(CLOVER_SIMT)
#include "simt.hpp"
#elif defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
#if !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif
#else
#define CLOVER_CUDA 1
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

// CLOVER_KERNEL(name, Params) { ... params.x ... }: one kernel, whose only argument is `params`.
// CLOVER_KERNEL_RESIDENT(name, Params, blocks): one that CUDA gives so few registers that as many blocks share a
// multiprocessor.
// CLOVER_SHARED(type, name, count): an array in shared memory. CLOVER_DYNAMIC_SHARED(name): the launch's dynamic part.
#if defined(CLOVER_SIMT)
#define CLOVER_KERNEL(name, Params)                                                                \
  extern "C" void name(const Params params);                                                       \
  static const ::clover::simt::KernelEntry entry_of_##name{                                        \
      #name, sizeof(Params), [](const void* bytes) { name(*static_cast<const Params*>(bytes)); }}; \
  extern "C" void name([[maybe_unused]] const Params params)
#define CLOVER_KERNEL_RESIDENT(name, Params, blocks) CLOVER_KERNEL(name, Params)
#define CLOVER_SHARED(type, name, count)      \
  static const char clover_key_of_##name = 0; \
  type* const name = static_cast<type*>(::clover::simt::shared_array(&clover_key_of_##name, sizeof(type) * (count)))
#define CLOVER_DYNAMIC_SHARED(name) unsigned char* const name = ::clover::simt::dynamic_shared()
#else
#define CLOVER_KERNEL(name, Params) \
  extern "C" __global__ void __launch_bounds__(::clover::native::kBlockThreads) name(const Params params)
#if defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
#define CLOVER_KERNEL_RESIDENT(name, Params, blocks) CLOVER_KERNEL(name, Params)
#else
#define CLOVER_KERNEL_RESIDENT(name, Params, blocks) \
  extern "C" __global__ void __launch_bounds__(::clover::native::kBlockThreads, blocks) name(const Params params)
#endif
#define CLOVER_SHARED(type, name, count) __shared__ type name[count]
#define CLOVER_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

// Keeps what is seldom needed out of the code that calls it.
#define CLOVER_NOINLINE __attribute__((noinline))

// Calls make(suffix, type) for the three element types: how the variants of a kernel are listed.
#define CLOVER_FOR_EACH_TYPE(make) make(f32, float) make(bf16, ::clover::native::Bf16) make(f16, ::clover::native::Fp16)

namespace clover::native {

constexpr int kMinLanes = 32;  // no supported device has smaller warps

// ---- elements ----

struct Bf16 {
  uint16_t bits;
};

struct Fp16 {
  uint16_t bits;
};

template <class To, class From>
__device__ __forceinline__ To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "as many bits on both sides");
  To to;
#if defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
  __builtin_memcpy(&to, &from, sizeof(To));  // HIP's own memcpy is a loop over bytes, which it copies through memory
#else
  memcpy(&to, &from, sizeof(To));
#endif
  return to;
}

__device__ __forceinline__ float to_float(float value) {
  return value;
}
__device__ __forceinline__ float to_float(Bf16 value) {
  return bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

#if defined(CLOVER_SIMT) || defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
__device__ __forceinline__ float to_float(Fp16 value) {
  return static_cast<float>(bit_cast<_Float16>(value));
}
__device__ __forceinline__ Fp16 round_to_fp16(float value) {
  return bit_cast<Fp16>(static_cast<_Float16>(value));
}
#else
__device__ __forceinline__ float to_float(Fp16 value) {
  return __half2float(__ushort_as_half(value.bits));
}
__device__ __forceinline__ Fp16 round_to_fp16(float value) {
  return Fp16{__half_as_ushort(__float2half_rn(value))};
}
#endif

// Rounds to nearest even; overflow gives infinity and a NaN stays one.
template <class T>
__device__ __forceinline__ T from_float(float value);

template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}

template <>
__device__ __forceinline__ Fp16 from_float<Fp16>(float value) {
  return round_to_fp16(value);
}

template <>
__device__ __forceinline__ Bf16 from_float<Bf16>(float value) {
#if defined(CLOVER_CUDA)
  return Bf16{__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return Bf16{static_cast<uint16_t>(value == value ? rounded : quiet)};
#endif
}

// ---- memory, 16 bytes at a time where that is known to be right ----

// The elements in a word, the first in the low bits: where a compiler does not see through a copy of an array.
template <class T>
__device__ __forceinline__ void unpack(uint32_t word, T* to) {
  to[0].bits = static_cast<uint16_t>(word);
  to[1].bits = static_cast<uint16_t>(word >> 16);
}

template <>
__device__ __forceinline__ void unpack<float>(uint32_t word, float* to) {
  to[0] = bit_cast<float>(word);
}

template <class T>
__device__ __forceinline__ uint32_t pack(const T* from) {
  return from[0].bits | static_cast<uint32_t>(from[1].bits) << 16;
}

template <>
__device__ __forceinline__ uint32_t pack<float>(const float* from) {
  return bit_cast<uint32_t>(from[0]);
}

// What a card does of itself at a vector's address that is no multiple of its size: the harness ends the test.
template <int kBytes>
__device__ __forceinline__ void need_aligned([[maybe_unused]] const void* address) {
#if defined(CLOVER_SIMT)
  ::clover::simt::need_aligned(address, kBytes);
#endif
}

// kCount neighbouring elements; with more than one, `from` is aligned to 16 bytes or to all of them, if that is less.
template <int kCount, class T>
__device__ __forceinline__ void load_elements(const T* from, T (&to)[kCount]) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  if constexpr (kBytes % 8 == 0) need_aligned<kBytes % 16 == 0 ? 16 : 8>(from);
  if constexpr (kBytes % 16 == 0) {
#if defined(CLOVER_CUDA)
    uint4 words[kBytes / 16];
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) words[i] = reinterpret_cast<const uint4*>(from)[i];
    memcpy(to, words, kBytes);
#else
    constexpr int kIn = 4 / sizeof(T);
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      const uint4 words = reinterpret_cast<const uint4*>(from)[i];
      T* part = to + 4 * kIn * i;
      unpack(words.x, part);
      unpack(words.y, part + kIn);
      unpack(words.z, part + 2 * kIn);
      unpack(words.w, part + 3 * kIn);
    }
#endif
  } else if constexpr (kBytes == 8) {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    unpack(words.x, to);
    unpack(words.y, to + kCount / 2);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = from[i];
  }
}

template <int kCount, class T>
__device__ __forceinline__ void load_floats(const T* from, float (&to)[kCount]) {
  T raw[kCount];
  load_elements(from, raw);
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = to_float(raw[i]);
}

template <int kCount, class T>
__device__ __forceinline__ void store_floats(T* to, const float (&from)[kCount]) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  T raw[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) raw[i] = from_float<T>(from[i]);
  if constexpr (kBytes % 8 == 0) need_aligned<kBytes % 16 == 0 ? 16 : 8>(to);
  if constexpr (kBytes % 16 == 0) {
#if defined(CLOVER_CUDA)
    uint4 words[kBytes / 16];
    memcpy(words, raw, kBytes);
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) reinterpret_cast<uint4*>(to)[i] = words[i];
#else
    constexpr int kIn = 4 / sizeof(T);
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      const T* part = raw + 4 * kIn * i;
      reinterpret_cast<uint4*>(to)[i] = {pack(part), pack(part + kIn), pack(part + 2 * kIn), pack(part + 3 * kIn)};
    }
#endif
  } else if constexpr (kBytes == 8) {
    *reinterpret_cast<uint2*>(to) = {pack(raw), pack(raw + kCount / 2)};
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = raw[i];
  }
}

// Neighbouring elements as they lie, 8 bytes or a multiple of 16: what waits in registers takes no more of them than it
// must.
template <class T, int kCount>
struct Raw {
  static constexpr int kWords = kCount * static_cast<int>(sizeof(T)) / 4;
  static_assert(kWords == 2 || kWords % 4 == 0, "in pieces of 8 or 16 bytes");
  uint32_t words[kWords];

  __device__ __forceinline__ void load(const T* from) {
    need_aligned<kWords == 2 ? 8 : 16>(from);
    if constexpr (kWords == 2) {
      const uint2 two = *reinterpret_cast<const uint2*>(from);
      words[0] = two.x, words[1] = two.y;
    } else {
#pragma unroll
      for (int i = 0; i < kWords; i += 4) {
        const uint4 four = reinterpret_cast<const uint4*>(from)[i / 4];
        words[i] = four.x, words[i + 1] = four.y, words[i + 2] = four.z, words[i + 3] = four.w;
      }
    }
  }

  __device__ __forceinline__ void to_floats(float (&to)[kCount]) const {
    constexpr int kIn = 4 / sizeof(T);
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      T elements[kIn];
      unpack(words[i], elements);
#pragma unroll
      for (int j = 0; j < kIn; ++j) to[i * kIn + j] = to_float(elements[j]);
    }
  }
};

// ---- threads ----

__device__ __forceinline__ int64_t grid_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t grid_threads() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

__device__ __forceinline__ int lane_count() {
  return static_cast<int>(warpSize);
}
__device__ __forceinline__ int warp_lane() {
  return static_cast<int>(threadIdx.x) & (lane_count() - 1);
}
__device__ __forceinline__ int warp_index() {
  return static_cast<int>(threadIdx.x) / lane_count();
}

// Which lanes of the warp say yes, lane 0 in the lowest bit. Every lane of the warp must take part.
__device__ __forceinline__ uint64_t ballot(bool yes) {
#if defined(CLOVER_SIMT)
  return ::clover::simt::ballot(yes);
#elif defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
  return __ballot(yes);
#else
  return __ballot_sync(0xffffffffu, yes);
#endif
}

__device__ __forceinline__ int count_bits(uint64_t bits) {
#if defined(CLOVER_SIMT)
  return __builtin_popcountll(bits);
#else
  return __popcll(bits);
#endif
}

// A part of a warp that works together: kLanes neighbouring lanes, a power of two that divides every warp. Results are
// in all of its lanes and do not depend on the size of the warp.
template <int kLanes>
struct Team {
  static_assert(kLanes >= 2 && kLanes <= kMinLanes && (kLanes & (kLanes - 1)) == 0, "a power of two within any warp");

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) & (kLanes - 1); }
  static __device__ __forceinline__ int index() { return static_cast<int>(threadIdx.x) / kLanes; }

  static __device__ __forceinline__ uint64_t mask() {
    constexpr uint64_t kOwn = (uint64_t{1} << kLanes) - 1;
    return kOwn << (warp_lane() & ~(kLanes - 1));
  }

  template <class Value>
  static __device__ __forceinline__ Value exchange(Value value, int distance) {
#if defined(CLOVER_SIMT)
    return ::clover::simt::shuffle_xor(mask(), value, distance);
#elif defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
    return __shfl_xor(value, distance, kLanes);
#else
    return __shfl_xor_sync(static_cast<uint32_t>(mask()), value, distance, kLanes);
#endif
  }

  template <class Value>
  static __device__ __forceinline__ Value sum(Value value) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) value += exchange(value, distance);
    return value;
  }

  // Several sums at once.
  template <int kCount>
  static __device__ __forceinline__ void sum_each(float (&values)[kCount]) {
    struct Values {
      float at[kCount];
    };
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
#if defined(CLOVER_SIMT)
      const Values others = exchange(bit_cast<Values>(values), distance);
#else
      Values others;
#pragma unroll
      for (int i = 0; i < kCount; ++i) others.at[i] = exchange(values[i], distance);
#endif
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] += others.at[i];
    }
  }

  // Of values without NaN.
  static __device__ __forceinline__ float max(float value) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      const float other = exchange(value, distance);
      value = other > value ? other : value;
    }
    return value;
  }
};

// ---- blocks: every thread must take part ----

// The sum over the block, in all threads.
template <class Value>
__device__ __forceinline__ Value block_sum(Value value) {
  constexpr int kTeams = kBlockThreads / kMinLanes;
  CLOVER_SHARED(Value, partial, kTeams);
  value = Team<kMinLanes>::sum(value);
  __syncthreads();  // the array may still be read by an earlier call
  if (Team<kMinLanes>::lane() == 0) partial[Team<kMinLanes>::index()] = value;
  __syncthreads();
  Value sum = partial[0];
  for (int i = 1; i < kTeams; ++i) sum += partial[i];
  return sum;
}

// How many threads before this one say yes, and how many of the block do.
__device__ __forceinline__ int block_rank(bool yes, int* total) {
  CLOVER_SHARED(int, counts, kBlockThreads / kMinLanes);
  const uint64_t votes = ballot(yes);
  __syncthreads();  // the array may still be read by an earlier call
  if (warp_lane() == 0) counts[warp_index()] = count_bits(votes);
  __syncthreads();
  int before = count_bits(votes & ((uint64_t{1} << warp_lane()) - 1));
  int all = 0;
  for (int warp = 0; warp < kBlockThreads / lane_count(); ++warp) {
    if (warp < warp_index()) before += counts[warp];
    all += counts[warp];
  }
  *total = all;
  return before;
}

// ---- arithmetic ----

__device__ __forceinline__ float infinity() {
  return bit_cast<float>(0x7f800000u);
}
__device__ __forceinline__ float without_nan(float value) {
  return value == value ? value : -infinity();
}

// 1 / x to one unit in the last place, for x from 1 to 2^126.
__device__ __forceinline__ float reciprocal(float x) {
#if defined(CLOVER_CUDA)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / x;
#endif
}

// e^x / (1 + e^x), which tends to e^x below; above 80 it is 1 and e^x would be too large for reciprocal().
__device__ __forceinline__ float sigmoid_of_power(float power) {
  return power * reciprocal(1.0f + power);
}
__device__ __forceinline__ float sigmoid(float x) {
  return sigmoid_of_power(expf(x > 80.0f ? 80.0f : x));
}

// 2^x, x at most 127; where the result is subnormal on CUDA as the square of its root, whose instruction has none.
__device__ __forceinline__ float power_of_two(float x) {
#if defined(CLOVER_CUDA)
  float root;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(0.5f * x));
  return root * root;
#else
  return exp2f(x);
#endif
}

// To a few units in the last place where x is, and |x| more of them below: for what is rounded to 16 bits, or small
// beside its neighbours there.
__device__ __forceinline__ float silu(float x) {
  constexpr float kLog2OfE = 1.44269504f;
  return x * sigmoid_of_power(power_of_two((x > 80.0f ? 80.0f : x) * kLog2OfE));
}

// a / b of numbers that are not negative; most fit 32 bits, whose division takes a third of the time.
__device__ __forceinline__ int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

// Times a factor that may lie outside FP32 although the product does not.
__device__ __forceinline__ float scaled(float x, double factor) {
  return factor > 1e-30 && factor < 1e30 ? x * static_cast<float>(factor) : static_cast<float>(x * factor);
}

// ---- packed sequences ----

// A sequence's tokens, and whether it takes part at all: a bad value of an index tensor makes it absent.
struct Sequence {
  int64_t begin, length;
  bool present;
};

__device__ __forceinline__ Sequence sequence_at(const int32_t* cu_seqlens, int64_t n, int64_t tokens) {
  const int64_t begin = cu_seqlens[n], end = cu_seqlens[n + 1];
  return {begin, end - begin, begin >= 0 && begin <= end && end <= tokens};
}

// The sequence that token t belongs to, or -1.
__device__ __forceinline__ int64_t sequence_of(const int32_t* cu_seqlens, int64_t sequences, int64_t t) {
  int64_t low = 0, high = sequences;  // the last one that begins at or before t, empty ones skipped
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (cu_seqlens[middle] <= t) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (low == sequences || sequences == 0) return -1;
  return cu_seqlens[low] <= t && t < cu_seqlens[low + 1] ? low : -1;
}

}  // namespace clover::native
