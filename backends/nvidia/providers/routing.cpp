// topk_softmax and block_coreset by the tuned kernels.
#include "backends/nvidia/kernels/routing/routing.h"

#include "common/device/provider.hpp"

namespace clover::nvidia {
namespace {

// Both operators name these tensors alike.
template <class Args, class Dims>
TopkSoftmaxArgs read_routing(const Args& a, const Dims& d) {
  const auto logits = device::view<2>(a.logits), ids = device::view<2>(a.ids), weights = device::view<2>(a.weights);
  TopkSoftmaxArgs args{};
  args.dtype = device::dtype_of(a.logits);
  args.tokens = d.T, args.experts = d.E, args.top_k = d.k;
  args.logits = logits.data, args.logits_row = logits.stride[0];
  args.ids = ids.template as<int32_t>(), args.ids_row = ids.stride[0];
  args.weights = weights.template as<float>(), args.weights_row = weights.stride[0];
  args.renormalize = a.renormalize != 0;
  return args;
}

struct TopkSoftmax {
  static constexpr auto plan = plan_topk_softmax;

  static TopkSoftmaxArgs read(const clover_topk_softmax_args& a, const clover_topk_softmax_dims& d) {
    return read_routing(a, d);
  }
};

struct BlockCoreset {
  static constexpr auto plan = plan_block_coreset;
  static constexpr uint64_t kTopPGiven = uint64_t{1} << 3;

  static BlockCoresetArgs read(const clover_block_coreset_args& a, const clover_block_coreset_dims& d) {
    const auto coreset = device::view<2>(a.coreset);
    BlockCoresetArgs args{};
    args.routing = read_routing(a, d);
    args.blocks = d.N;
    args.cu_seqlens = device::view<1>(a.cu_seqlens).as<int32_t>();
    args.live = device::view<1>(a.live).as<uint8_t>();
    args.coreset = coreset.as<uint8_t>(), args.coreset_row = coreset.stride[0];
    args.budget = d.budget;
    args.largest = a.mode == CLOVER_block_coreset_mode_max;
    args.top_p = (a.given & kTopPGiven) != 0 ? static_cast<float>(a.top_p) : 0.0f;
    return args;
  }
};

}  // namespace
}  // namespace clover::nvidia

CLOVER_PLANNED_PROVIDER(topk_softmax, 0, "native", clover::nvidia::TopkSoftmax);
CLOVER_PLANNED_PROVIDER(block_coreset, 0, "native", clover::nvidia::BlockCoreset);
