// live_row_routes and merge_live_rows by the tuned kernels.
#include "backends/nvidia/kernels/routing/live_rows.h"

#include "common/device/provider.hpp"

namespace clover::nvidia {
namespace {

struct LiveRowRoutes {
  static constexpr auto plan = plan_live_row_routes;

  static LiveRowRoutesArgs read(const clover_live_row_routes_args& a, const clover_live_row_routes_dims& d) {
    using device::view;
    const auto ids = view<2>(a.ids), weights = view<2>(a.weights);
    const auto live_ids = view<2>(a.live_ids), live_weights = view<2>(a.live_weights);
    LiveRowRoutesArgs args{};
    args.tokens = d.T, args.top_k = d.k;
    args.ids = ids.as<int32_t>(), args.ids_row = ids.stride[0];
    args.weights = weights.as<float>(), args.weights_row = weights.stride[0];
    args.live = view<1>(a.live).as<uint8_t>();
    args.live_ids = live_ids.as<int32_t>(), args.live_ids_row = live_ids.stride[0];
    args.live_weights = live_weights.as<float>(), args.live_weights_row = live_weights.stride[0];
    args.rows = view<1>(a.rows).as<int32_t>();
    args.count = view<1>(a.count).as<int32_t>();
    return args;
  }
};

struct MergeLiveRows {
  static constexpr auto plan = plan_merge_live_rows;

  static MergeLiveRowsArgs read(const clover_merge_live_rows_args& a, const clover_merge_live_rows_dims& d) {
    using device::view;
    const auto fresh = view<2>(a.fresh), cache = view<2>(a.cache), out = view<2>(a.out);
    MergeLiveRowsArgs args{};
    args.tokens = d.T, args.width = d.D, args.element_bytes = a.fresh->dtype.bits / 8;
    args.fresh = fresh.data, args.fresh_row = fresh.stride[0];
    args.cache = cache.data, args.cache_row = cache.stride[0];
    args.live = view<1>(a.live).as<uint8_t>();
    args.out = out.data, args.out_row = out.stride[0];
    return args;
  }
};

}  // namespace
}  // namespace clover::nvidia

CLOVER_PLANNED_PROVIDER(live_row_routes, 0, "native", clover::nvidia::LiveRowRoutes);
CLOVER_PLANNED_PROVIDER(merge_live_rows, 0, "native", clover::nvidia::MergeLiveRows);
