// The two gates of a value head, in double: where the decay is the product of a huge and a tiny number, FP32 would
// lose it.
#pragma once

namespace clover::cpu::CLOVER_CPU_ISA {

// -exp(A_log) softplus(x), x being a + dt_bias.
inline float log_decay(double A_log, double x) {
  if (x < -37.0) return static_cast<float>(-__builtin_exp(A_log + x));  // softplus(x) is e^x to double precision
  const double softplus = x > 20.0 ? x : __builtin_log1p(__builtin_exp(x));
  return static_cast<float>(-__builtin_exp(A_log) * softplus);
}

inline float write_strength(double b) {
  return static_cast<float>(1.0 / (1.0 + __builtin_exp(-b)));
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
