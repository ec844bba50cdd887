// preview_gdn by the tuned kernels.
#include "backends/nvidia/kernels/delta/preview_gdn.h"

#include <algorithm>
#include <cstdint>

#include "common/device/provider.hpp"

namespace clover::nvidia {
namespace {

static_assert(static_cast<int>(DeltaRead::kBidirectional) == CLOVER_preview_gdn_read_bidirectional &&
              static_cast<int>(DeltaRead::kBlock) == CLOVER_preview_gdn_read_block &&
              static_cast<int>(DeltaRead::kCausal) == CLOVER_preview_gdn_read_causal);

struct PreviewGdn {
  struct Args {
    PreviewGdnArgs tuned{};
    bool narrow = true;  // the strides that the kernels keep in 32 bits fit there
  };

  static int plan(const native::Machine& machine, const Args& args, native::Launch launches[], int max_launches,
                  const char** why_not) {
    if (args.narrow) return plan_preview_gdn(machine, args.tuned, launches, max_launches, why_not);
    return *why_not = "strides of a, b, conv_state and conv_weight must be below 2^31", 0;
  }

  static Args read(const clover_preview_gdn_args& in, const clover_preview_gdn_dims& d) {
    using device::view;
    const auto qkv = view<2>(in.qkv), a = view<2>(in.a), b = view<2>(in.b), weight = view<2>(in.conv_weight);
    const auto z = view<3>(in.z), o = view<3>(in.o), conv_state = view<3>(in.conv_state);
    const auto state = view<4>(in.state);
    Args args;
    const auto narrow = [&args](int64_t stride) {
      if (stride < INT32_MIN || stride > INT32_MAX) args.narrow = false;
      return static_cast<int32_t>(stride);
    };
    args.tuned.dtype = device::dtype_of(in.qkv);
    args.tuned.conv_width = narrow(d.KC);
    args.tuned.max_seqlen = in.max_seqlen;

    PreviewDeltaParams& p = args.tuned.call.delta;
    p.state = state.as<float>();
    p.state_slot = state.stride[0], p.state_head = state.stride[1];
    p.state_v = state.stride[2], p.state_k = state.stride[3];
    p.cu_seqlens = view<1>(in.cu_seqlens).as<int32_t>();
    p.initial = view<1>(in.initial_state_indices).as<int32_t>();
    p.o = o.data, p.o_token = o.stride[0], p.o_head = o.stride[1];
    p.tokens = d.T, p.slots = std::min(d.S, d.SC);
    p.sequences = narrow(d.N), p.heads = narrow(d.H), p.value_heads = narrow(d.HV);
    p.key_dim = narrow(d.K), p.value_dim = narrow(d.V);
    p.scale = static_cast<float>(in.scale);
    p.read = static_cast<DeltaRead>(in.read);

    PreviewGdnParams& c = args.tuned.call;
    c.qkv = qkv.data, c.qkv_token = qkv.stride[0];
    c.a = a.data, c.a_token = narrow(a.stride[0]), c.a_head = narrow(a.stride[1]);
    c.b = b.data, c.b_token = narrow(b.stride[0]), c.b_head = narrow(b.stride[1]);
    c.z = z.data, c.z_token = z.stride[0], c.z_head = z.stride[1];
    c.conv_weight = weight.data, c.weight_channel = narrow(weight.stride[0]);
    c.conv_bias = view<1>(in.conv_bias).data;
    c.conv_state = conv_state.data, c.conv_slot = conv_state.stride[0];
    c.conv_channel = narrow(conv_state.stride[1]), c.conv_column = narrow(conv_state.stride[2]);
    c.a_log = view<1>(in.A_log).as<float>();
    c.dt_bias = view<1>(in.dt_bias).data;
    c.norm_weight = view<1>(in.norm_weight).data;
    c.eps = static_cast<float>(in.eps);
    return args;
  }
};

}  // namespace
}  // namespace clover::nvidia

CLOVER_PLANNED_PROVIDER(preview_gdn, 0, "native", clover::nvidia::PreviewGdn);
