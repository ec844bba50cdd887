// Vectors of floats as wide as the variant's registers, and the functions of real numbers that the operators need.
//
// Variant sources and these headers use no inline function of the C++ library: the linker keeps one copy of such a
// function, and could keep one that was compiled for instructions that the machine lacks.
#pragma once

#include <stdint.h>

#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

namespace clover::cpu::CLOVER_CPU_ISA {

constexpr int kLanes = CLOVER_CPU_VECTOR_BYTES / 4;

typedef float Vec __attribute__((vector_size(CLOVER_CPU_VECTOR_BYTES)));
typedef int32_t IntVec __attribute__((vector_size(CLOVER_CPU_VECTOR_BYTES)));
typedef uint32_t UintVec __attribute__((vector_size(CLOVER_CPU_VECTOR_BYTES)));

constexpr float kInfinity = __builtin_inff();

inline Vec splat(float value) {
  return value - Vec{};
}

inline Vec load(const float* from) {
  Vec value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

inline void store(float* to, Vec value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

inline Vec maximum(Vec a, Vec b) {
  return a > b ? a : b;
}

// Adds the lanes of four vectors, each in the same order.
inline void sum_lanes(const Vec (&values)[4], float* sums) {
#if defined(__SSE4_1__)
  __m128 quarter[4];
  for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(values[i]), _mm512_extractf32x8_ps(values[i], 1));
    quarter[i] = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#elif defined(__AVX__)
    quarter[i] = _mm_add_ps(_mm256_castps256_ps128(values[i]), _mm256_extractf128_ps(values[i], 1));
#else
    quarter[i] = values[i];
#endif
  }
  const __m128 low = _mm_hadd_ps(quarter[0], quarter[1]);
  const __m128 high = _mm_hadd_ps(quarter[2], quarter[3]);
  _mm_storeu_ps(sums, _mm_hadd_ps(low, high));
#else
  for (int i = 0; i < 4; ++i) {
    float lanes[kLanes];
    store(lanes, values[i]);
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    }
    sums[i] = lanes[0];
  }
#endif
}

inline float sum_lanes(Vec value) {
  float sums[4];
  sum_lanes({value, Vec{}, Vec{}, Vec{}}, sums);
  return sums[0];
}

inline float max_lanes(Vec value) {
  float greatest = value[0];
  for (int lane = 1; lane < kLanes; ++lane) greatest = value[lane] > greatest ? value[lane] : greatest;
  return greatest;
}

// e^x to about one unit in the last place, subnormal results included; NaN stays NaN.
inline Vec exponential(Vec x) {
  // Beyond these the result is 0 or Inf anyway, and the exponents below stay in range.
  x = x < -104.0f ? splat(-104.0f) : x;
  x = x > 89.0f ? splat(89.0f) : x;
  // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
  constexpr float kRounder = 12582912.0f;
  const Vec shifted = x * 1.44269504f + kRounder;
  const Vec n = shifted - kRounder;
  const IntVec exponent = (IntVec)shifted - (IntVec)splat(kRounder);
  const Vec r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Vec p = splat(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = (p * r) * r + r + 1.0f;
  // In two steps, because 2^n itself may be out of range where the result is not.
  const IntVec half = exponent >> 1;
  const Vec low = (Vec)((half + 127) << 23);
  const Vec high = (Vec)((exponent - half + 127) << 23);
  return p * low * high;
}

// With e^-|x|, which cannot overflow, so that very negative x keep their precision.
inline Vec sigmoid(Vec x) {
  const Vec magnitude = (Vec)((UintVec)x & 0x7FFFFFFFu);
  const Vec e = exponential(-magnitude);
  return (x >= 0.0f ? splat(1.0f) : e) / (1.0f + e);
}

inline Vec silu(Vec x) {
  return x * sigmoid(x);
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
