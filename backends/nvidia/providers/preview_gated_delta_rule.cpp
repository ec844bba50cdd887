// preview_gated_delta_rule by the tuned kernels.
#include "backends/nvidia/kernels/delta/preview_delta.h"
#include "delta_args.hpp"

namespace clover::nvidia {
namespace {

static_assert(static_cast<int>(DeltaRead::kBidirectional) == CLOVER_preview_gated_delta_rule_read_bidirectional &&
              static_cast<int>(DeltaRead::kBlock) == CLOVER_preview_gated_delta_rule_read_block &&
              static_cast<int>(DeltaRead::kCausal) == CLOVER_preview_gated_delta_rule_read_causal);

struct PreviewGatedDeltaRule {
  static constexpr auto plan = plan_preview_delta;

  static PreviewDeltaArgs read(const clover_preview_gated_delta_rule_args& a,
                               const clover_preview_gated_delta_rule_dims& d) {
    PreviewDeltaArgs args{};
    args.dtype = device::dtype_of(a.q);
    args.max_seqlen = a.max_seqlen;
    read_delta(&args.call, a, d);
    args.call.read = static_cast<DeltaRead>(a.read);
    return args;
  }
};

}  // namespace
}  // namespace clover::nvidia

CLOVER_PLANNED_PROVIDER(preview_gated_delta_rule, 0, "native", clover::nvidia::PreviewGatedDeltaRule);
