// fused_moe by the tuned kernels.
#include "backends/nvidia/kernels/moe/fused_moe.h"

#include "common/device/provider.hpp"

namespace clover::nvidia {
namespace {

struct FusedMoe {
  static constexpr auto plan = plan_fused_moe;

  static FusedMoeArgs read(const clover_fused_moe_args& a, const clover_fused_moe_dims& d) {
    using device::view;
    const auto x = view<2>(a.x), ids = view<2>(a.ids), weights = view<2>(a.weights), y = view<2>(a.y);
    const auto w13 = view<3>(a.w13), w2 = view<3>(a.w2);
    const auto shared_w13 = view<2>(a.shared_w13), shared_w2 = view<2>(a.shared_w2);
    FusedMoeArgs args{};
    args.dtype = device::dtype_of(a.x);
    args.tokens = d.T, args.hidden = d.D, args.intermediate = d.I, args.experts = d.E, args.top_k = d.k;
    args.shared_intermediate = a.shared_w13 == nullptr ? 0 : d.Is;
    args.x = x.data, args.x_row = x.stride[0];
    args.w13 = w13.data, args.w13_expert = w13.stride[0], args.w13_row = w13.stride[1];
    args.w2 = w2.data, args.w2_expert = w2.stride[0], args.w2_row = w2.stride[1];
    args.ids = ids.as<int32_t>(), args.ids_row = ids.stride[0];
    args.weights = weights.as<float>(), args.weights_row = weights.stride[0];
    args.shared_w13 = shared_w13.data, args.shared_w13_row = shared_w13.stride[0];
    args.shared_w2 = shared_w2.data, args.shared_w2_row = shared_w2.stride[0];
    args.shared_gate = view<1>(a.shared_gate).data;
    args.y = y.data, args.y_row = y.stride[0];
    args.routed_scale = static_cast<float>(a.routed_scale);
    return args;
  }

  static uint64_t workspace_bytes(const native::Machine&, const FusedMoeArgs& args) {
    return fused_moe_workspace_bytes(args);
  }

  static void set_workspace(FusedMoeArgs* args, void* workspace, uint64_t bytes) {
    args->workspace = workspace;
    args->workspace_bytes = bytes;
  }
};

}  // namespace
}  // namespace clover::nvidia

CLOVER_PLANNED_PROVIDER(fused_moe, 0, "native", clover::nvidia::FusedMoe);
