// What the kernels of the delta rule take alike, out of a call's tensors.
#pragma once

#include "common/device/provider.hpp"

namespace clover::nvidia {

template <class Params, class Args, class Dims>
void read_delta(Params* params, const Args& a, const Dims& d) {
  using device::view;
  Params& p = *params;
  const auto q = view<3>(a.q), k = view<3>(a.k), v = view<3>(a.v), o = view<3>(a.o);
  const auto g = view<2>(a.g), beta = view<2>(a.beta);
  const auto state = view<4>(a.state);
  p.q = q.data, p.q_token = q.stride[0], p.q_head = q.stride[1];
  p.k = k.data, p.k_token = k.stride[0], p.k_head = k.stride[1];
  p.v = v.data, p.v_token = v.stride[0], p.v_head = v.stride[1];
  p.o = o.data, p.o_token = o.stride[0], p.o_head = o.stride[1];
  p.g = g.template as<float>(), p.g_token = g.stride[0], p.g_head = g.stride[1];
  p.beta = beta.template as<float>(), p.beta_token = beta.stride[0], p.beta_head = beta.stride[1];
  p.state = state.template as<float>();
  p.state_slot = state.stride[0], p.state_head = state.stride[1];
  p.state_v = state.stride[2], p.state_k = state.stride[3];
  p.cu_seqlens = view<1>(a.cu_seqlens).template as<int32_t>();
  p.initial = view<1>(a.initial_state_indices).template as<int32_t>();
  p.tokens = d.T, p.slots = d.S;
  p.sequences = static_cast<int32_t>(d.N);
  p.heads = static_cast<int32_t>(d.H), p.value_heads = static_cast<int32_t>(d.HV);
  p.key_dim = static_cast<int32_t>(d.K), p.value_dim = static_cast<int32_t>(d.V);
  p.scale = static_cast<float>(a.scale);
  p.l2norm = a.l2norm;
}

}  // namespace clover::nvidia
