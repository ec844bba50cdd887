// What the providers of the delta rule pass to its kernels alike.
#pragma once

#include "common/jit/provider.hpp"

namespace clover::jit {

// The tensors that gated_delta_rule and preview_gated_delta_rule share.
template <class Args>
struct DeltaTensors {
  explicit DeltaTensors(const Args& a)
      : q(a.q),
        k(a.k),
        v(a.v),
        o(a.o),
        g(a.g),
        beta(a.beta),
        state(a.state),
        cu_seqlens(a.cu_seqlens),
        initial(a.initial_state_indices) {}

  device::View<3> q, k, v, o;
  device::View<2> g, beta;
  device::View<4> state;
  device::View<1> cu_seqlens, initial;

  template <int kRank>
  static void pass_token_and_head(Launch* launch, const device::View<kRank>& view) {
    launch->pass(view.stride[0]).pass(view.stride[1]);
  }
  void pass_state(Launch* launch) const {
    for (const int64_t stride : state.stride) launch->pass(stride);
  }
};

// How delta_rule.py multiplies FP32 matrices: IEEE products on HIP; on CUDA BF16 terms or TF32 passes.
inline int64_t delta_precision(const char* data) {
  if (!device::Driver::kCuda) return 0;
  return data[0] == 'b' ? 2 : 1;
}

// Sequences up to here are replayed token by token in the chunked commit, exactly as the native kernels do.
constexpr int64_t kDeltaShort = 64;

// What the kernels are not made for: keys are held in registers, and tokens and slots are counted in 32 bits.
template <class Dims>
const char* delta_limits(const Dims& d) {
  if (d.K > 256) return "K is above 256";
  if (d.T > INT32_MAX || d.S > INT32_MAX) return "T or S is above 2^31 - 1";
  return nullptr;
}

}  // namespace clover::jit
