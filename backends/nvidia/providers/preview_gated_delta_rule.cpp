// preview_gated_delta_rule by the tuned kernels.
#include <initializer_list>

#include "backends/nvidia/kernels/delta/preview_delta.h"
#include "common/device/provider.hpp"

namespace clover::nvidia {
namespace {

static_assert(static_cast<int>(DeltaRead::kBidirectional) == CLOVER_preview_gated_delta_rule_read_bidirectional &&
              static_cast<int>(DeltaRead::kBlock) == CLOVER_preview_gated_delta_rule_read_block &&
              static_cast<int>(DeltaRead::kCausal) == CLOVER_preview_gated_delta_rule_read_causal);

struct PreviewGatedDeltaRule {
  static constexpr auto plan = plan_preview_delta;

  static PreviewDeltaArgs read(const clover_preview_gated_delta_rule_args& a,
                               const clover_preview_gated_delta_rule_dims& d) {
    using device::view;
    const auto q = view<3>(a.q), k = view<3>(a.k), v = view<3>(a.v), o = view<3>(a.o);
    const auto g = view<2>(a.g), beta = view<2>(a.beta);
    const auto state = view<4>(a.state);
    PreviewDeltaArgs args{};
    args.dtype = device::dtype_of(a.q);
    args.max_seqlen = a.max_seqlen;
    PreviewDeltaParams& p = args.call;
    p.q = q.data, p.q_token = q.stride[0], p.q_head = q.stride[1];
    p.k = k.data, p.k_token = k.stride[0], p.k_head = k.stride[1];
    p.v = v.data, p.v_token = v.stride[0], p.v_head = v.stride[1];
    p.o = o.data, p.o_token = o.stride[0], p.o_head = o.stride[1];
    p.g = g.as<float>(), p.g_token = g.stride[0], p.g_head = g.stride[1];
    p.beta = beta.as<float>(), p.beta_token = beta.stride[0], p.beta_head = beta.stride[1];
    p.state = state.as<float>();
    p.state_slot = state.stride[0], p.state_head = state.stride[1];
    p.state_v = state.stride[2], p.state_k = state.stride[3];
    p.cu_seqlens = view<1>(a.cu_seqlens).as<int32_t>();
    p.initial = view<1>(a.initial_state_indices).as<int32_t>();
    p.tokens = d.T, p.slots = d.S;
    p.sequences = static_cast<int32_t>(d.N);
    p.heads = static_cast<int32_t>(d.H), p.value_heads = static_cast<int32_t>(d.HV);
    p.key_dim = static_cast<int32_t>(d.K), p.value_dim = static_cast<int32_t>(d.V);
    p.scale = static_cast<float>(a.scale);
    p.l2norm = a.l2norm;
    p.read = static_cast<DeltaRead>(a.read);
    return args;
  }
};

}  // namespace
}  // namespace clover::nvidia

CLOVER_PLANNED_PROVIDER(preview_gated_delta_rule, 0, "native", clover::nvidia::PreviewGatedDeltaRule);
