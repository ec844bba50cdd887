// gated_delta_rule by the tuned kernels.
#include "backends/nvidia/kernels/delta/gated_delta.h"
#include "delta_args.hpp"

namespace clover::nvidia {
namespace {

struct GatedDeltaRule {
  static constexpr auto plan = plan_gated_delta;

  static GatedDeltaArgs read(const clover_gated_delta_rule_args& a, const clover_gated_delta_rule_dims& d) {
    GatedDeltaArgs args{};
    args.dtype = device::dtype_of(a.q);
    args.max_seqlen = a.max_seqlen;
    read_delta(&args.call, a, d);
    args.call.final = device::view<1>(a.final_state_indices).as<int32_t>();
    return args;
  }
};

}  // namespace
}  // namespace clover::nvidia

CLOVER_PLANNED_PROVIDER(gated_delta_rule, 0, "native", clover::nvidia::GatedDeltaRule);
