// All operators by the portable kernels on the host: slot 8 with warps of 32 lanes, slot 9 with 64.
#include <clover/provider.hpp>
#include <type_traits>
#include <utility>

#include "common/kernels/native/operators.hpp"
#include "simt.hpp"

namespace clover::simt {
namespace {

constexpr int kMaxLaunches = 16;

template <class Operator, class Args, class Dims, int kWarpSize>
struct Provider {
  using PlanArgs = decltype(Operator::read(std::declval<const Args&>(), std::declval<const Dims&>()));

  template <class T, class = void>
  struct HasWorkspace : std::false_type {};
  template <class T>
  struct HasWorkspace<T, std::void_t<decltype(&T::workspace_bytes)>> : std::true_type {};

  static native::Machine machine() { return {kWarpSize, 0, 1, kSharedBytes}; }

  static int32_t accept(const clover_call& call, const Args& args, const Dims& dims) {
    PlanArgs plan_args = Operator::read(args, dims);
    if constexpr (HasWorkspace<Operator>::value) {
      Operator::set_workspace(&plan_args, nullptr, Operator::workspace_bytes(machine(), plan_args));
    }
    native::Launch launches[kMaxLaunches];
    const char* why_not = nullptr;
    const int count = Operator::plan(machine(), plan_args, launches, kMaxLaunches, &why_not);
    return count > 0 || why_not == nullptr ? 1 : refuse(call, 0, "%s", why_not);
  }

  static uint64_t workspace_bytes(const clover_call&, const Args& args, const Dims& dims) {
    if constexpr (HasWorkspace<Operator>::value) {
      return Operator::workspace_bytes(machine(), Operator::read(args, dims));
    }
    return 0;
  }

  static int32_t run(const clover_call& call, const Args& args, const Dims& dims) {
    PlanArgs plan_args = Operator::read(args, dims);
    if constexpr (HasWorkspace<Operator>::value) {
      Operator::set_workspace(&plan_args, call.workspace, call.workspace_bytes);
    }
    native::Launch launches[kMaxLaunches];
    const char* why_not = nullptr;
    const int count = Operator::plan(machine(), plan_args, launches, kMaxLaunches, &why_not);
    if (count == 0 && why_not != nullptr) return refuse(call, CLOVER_UNSUPPORTED, "%s", why_not);
    launch(launches, count, kWarpSize);
    return CLOVER_OK;
  }
};

}  // namespace
}  // namespace clover::simt

#define CLOVER_SIMT_SLOT(op, Operator, slot, lanes)                                                                   \
  namespace {                                                                                                         \
  using op##_on_##lanes =                                                                                             \
      ::clover::simt::Provider<::clover::native::operators::Operator, clover_##op##_args, clover_##op##_dims, lanes>; \
  }                                                                                                                   \
  CLOVER_PROVIDER(op, slot, "simt", op##_on_##lanes::accept, op##_on_##lanes::workspace_bytes, op##_on_##lanes::run)
#define CLOVER_SIMT_PROVIDER(op, Operator) \
  CLOVER_SIMT_SLOT(op, Operator, 8, 32);   \
  CLOVER_SIMT_SLOT(op, Operator, 9, 64)

CLOVER_SIMT_PROVIDER(causal_conv1d, CausalConv1d);
CLOVER_SIMT_PROVIDER(preview_conv1d, PreviewConv1d);
CLOVER_SIMT_PROVIDER(gated_delta_net_gating, GatedDeltaNetGating);
CLOVER_SIMT_PROVIDER(gated_delta_rule, GatedDeltaRule);
CLOVER_SIMT_PROVIDER(preview_gated_delta_rule, PreviewGatedDeltaRule);
CLOVER_SIMT_PROVIDER(preview_gdn, PreviewGdn);
CLOVER_SIMT_PROVIDER(topk_softmax, TopkSoftmax);
CLOVER_SIMT_PROVIDER(block_coreset, BlockCoreset);
CLOVER_SIMT_PROVIDER(live_row_routes, LiveRowRoutes);
CLOVER_SIMT_PROVIDER(merge_live_rows, MergeLiveRows);
CLOVER_SIMT_PROVIDER(fused_moe, FusedMoe);
CLOVER_SIMT_PROVIDER(rotary_embedding, RotaryEmbedding);
CLOVER_SIMT_PROVIDER(rearrange, Rearrange);
CLOVER_SIMT_PROVIDER(cast, Cast);
CLOVER_SIMT_PROVIDER(rms_norm_gated, RmsNormGated);
