// Rows scaled to unit length or unit root mean square.
#pragma once

#include "number.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

// In double no FP32 number's square overflows or vanishes.
template <class T>
[[gnu::noinline]] double sum_of_extreme_squares(const T* row, int64_t size) {
  double sum = 0.0;
  for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(to_float(row[i])) * to_float(row[i]);
  return sum;
}

template <class T>
inline double sum_of_squares(const T* row, int64_t size) {
  Vec lanes{};
  for (int64_t i = 0; i < size; i += kLanes) {
    const Vec x = load_part(row + i, size - i);
    lanes += x * x;
  }
  const float sum = sum_lanes(lanes);
  return sum > 1e-25f && sum < 1e30f ? sum : sum_of_extreme_squares(row, size);
}

// Times a factor that may lie outside FP32 although the product does not.
inline Vec scaled(Vec x, double factor) {
  if (factor > 1e-30 && factor < 1e30) return x * static_cast<float>(factor);
  Vec product;
  for (int lane = 0; lane < kLanes; ++lane) product[lane] = static_cast<float>(x[lane] * factor);
  return product;
}

// A row in FP32 whose size is a multiple of kLanes, times rsqrt(its sum of squares + 1e-6).
inline void l2_normalize(float* row, int64_t size) {
  const double factor = 1.0 / __builtin_sqrt(sum_of_squares(row, size) + 1e-6);
  for (int64_t i = 0; i < size; i += kLanes) store(row + i, scaled(load(row + i), factor));
}

// out = x rsqrt(mean x^2 + eps) weight silu(z).
template <class X, class T>
inline void rms_norm_gated_row(const X* x, const T* weight, const T* z, int64_t size, double eps, T* out) {
  const double factor = 1.0 / __builtin_sqrt(sum_of_squares(x, size) / static_cast<double>(size) + eps);
  for (int64_t i = 0; i < size; i += kLanes) {
    const int64_t left = size - i;
    const Vec normed = scaled(load_part(x + i, left), factor) * load_part(weight + i, left);
    store_part(out + i, left, normed * silu(load_part(z + i, left)));
  }
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
