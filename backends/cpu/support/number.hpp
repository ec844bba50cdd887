// BF16 and FP16: to float exactly, from float to nearest even, overflow to Inf, NaN kept (and quiet).
#pragma once

#include <clover/abi.h>

#include "vector.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

struct Bf16 {
  uint16_t bits;
};

struct Fp16 {
  uint16_t bits;
};

template <class To, class From>
inline To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "only the type changes");
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

inline float to_float(float value) {
  return value;
}

inline float to_float(Bf16 value) {
  return bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline float to_float(Fp16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t rest = value.bits & 0x7FFFu;
  const uint32_t subnormal = bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24f);
  const uint32_t normal = (rest << 13) + (112u << 23);
  const uint32_t special = ((rest << 13) + (224u << 23)) | (rest > 0x7C00u ? 1u << 22 : 0u);
  return bit_cast<float>(sign | (rest < 0x0400u ? subnormal : rest < 0x7C00u ? normal : special));
}

template <class T>
inline T from_float(float value);

template <>
inline float from_float<float>(float value) {
  return value;
}

template <>
inline Bf16 from_float<Bf16>(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return {static_cast<uint16_t>(value != value ? quiet : rounded)};
}

template <>
inline Fp16 from_float<Fp16>(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7FFFFFFFu;
  // Added to 0.5, a number loses the bits below 2^-24, the step of FP16's subnormals, by the processor's own rounding.
  const uint32_t subnormal = bit_cast<uint32_t>(bit_cast<float>(rest) + 0.5f) - bit_cast<uint32_t>(0.5f);
  const uint32_t normal = (rest - (112u << 23) + 0x0FFFu + ((rest >> 13) & 1u)) >> 13;
  const uint32_t quiet = 0x7E00u | ((rest >> 13) & 0x3FFu);
  const uint32_t magnitude = rest > 0x7F800000u    ? quiet
                             : rest >= 0x477FF000u ? 0x7C00u  // 65520 and more
                             : rest < 0x38800000u  ? subnormal
                                                   : normal;
  return {static_cast<uint16_t>(sign | magnitude)};
}

#if defined(__AVX512F__)

inline Vec load(const Bf16* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

inline Vec load(const Fp16* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

inline void store_low_halves(uint16_t* to, UintVec value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16((__m512i)value));
}

inline void store(Fp16* to, Vec value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}

#elif defined(__AVX2__)

inline Vec load(const Bf16* from) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

inline Vec load(const Fp16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

inline void store_low_halves(uint16_t* to, UintVec value) {
  const __m256i packed = _mm256_packus_epi32((__m256i)value, (__m256i)value);
  const __m256i joined = _mm256_permute4x64_epi64(packed, 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(joined));
}

inline void store(Fp16* to, Vec value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}

#else

#if defined(__SSE4_1__)

inline Vec load(const Bf16* from) {
  const __m128i bits = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(bits), 16));
}

inline void store_low_halves(uint16_t* to, UintVec value) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi32((__m128i)value, (__m128i)value));
}

#else

inline Vec load(const Bf16* from) {
  UintVec bits;
  for (int lane = 0; lane < kLanes; ++lane) bits[lane] = static_cast<uint32_t>(from[lane].bits) << 16;
  return (Vec)bits;
}

inline void store_low_halves(uint16_t* to, UintVec value) {
  for (int lane = 0; lane < kLanes; ++lane) to[lane] = static_cast<uint16_t>(value[lane]);
}

#endif

inline Vec load(const Fp16* from) {
  Vec value;
  for (int lane = 0; lane < kLanes; ++lane) value[lane] = to_float(from[lane]);
  return value;
}

inline void store(Fp16* to, Vec value) {
  for (int lane = 0; lane < kLanes; ++lane) to[lane] = from_float<Fp16>(value[lane]);
}

#endif

inline void store(Bf16* to, Vec value) {
  const UintVec bits = (UintVec)value;
  const UintVec rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const UintVec quiet = (bits >> 16) | 0x40u;
  store_low_halves(&to->bits, value != value ? quiet : rounded);
}

// The first `count` lanes, at most all; the others are `rest`.
template <class T>
inline Vec load_part(const T* from, int64_t count, float rest = 0.0f) {
  if (count >= kLanes) return load(from);
  float lanes[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = lane < count ? to_float(from[lane]) : rest;
  return load(lanes);
}

template <class T>
inline void store_part(T* to, int64_t count, Vec value) {
  if (count >= kLanes) return store(to, value);
  T lanes[kLanes];
  store(lanes, value);
  for (int64_t lane = 0; lane < count; ++lane) to[lane] = lanes[lane];
}

template <class T>
struct Type {
  using type = T;
};

// Calls `body` with a Type of what the dtype, one of BF16, FP16 and FP32, is in memory.
template <class Body>
inline void with_float_type(clover_dtype dtype, const Body& body) {
  if (dtype.code == CLOVER_BFLOAT) {
    body(Type<Bf16>{});
  } else if (dtype.bits == 16) {
    body(Type<Fp16>{});
  } else {
    body(Type<float>{});
  }
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
