// live_row_routes and merge_live_rows.
#include "live_rows.h"
#include "portable.cuh"

namespace clover::native {
namespace {

// One block lists the live rows in order, then -1.
__device__ __forceinline__ void list_rows(const LiveRowRoutesParams& p) {
  int64_t listed = 0;
  for (int64_t first = 0; first < p.tokens; first += kBlockThreads) {
    const int64_t t = first + threadIdx.x;
    const bool live = t < p.tokens && p.live[t] != 0;
    int total = 0;
    const int before = block_rank(live, &total);
    if (live) p.rows[listed + before] = static_cast<int32_t>(t);
    listed += total;
  }
  for (int64_t i = listed + threadIdx.x; i < p.tokens; i += kBlockThreads) p.rows[i] = -1;
  if (threadIdx.x == 0) *p.count = static_cast<int32_t>(listed);
}

__device__ __forceinline__ void mask_routes(const LiveRowRoutesParams& p) {
  const int64_t count = p.tokens * p.top_k;
  const int64_t step = grid_threads() - kBlockThreads;
  for (int64_t item = grid_thread() - kBlockThreads; item < count; item += step) {
    const int64_t t = item / p.top_k, j = item - t * p.top_k;
    const bool live = p.live[t] != 0;
    p.live_ids[t * p.live_ids_row + j] = live ? p.ids[t * p.ids_row + j] : -1;
    p.live_weights[t * p.live_weights_row + j] = live ? p.weights[t * p.weights_row + j] : 0.0f;
  }
}

template <class Item>
__device__ __forceinline__ void merge(const MergeParams& p) {
  const int64_t count = p.tokens * p.width;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t t = item / p.width, i = item - t * p.width;
    Item* cached = static_cast<Item*>(p.cache) + t * p.cache_row + i;
    Item* out = static_cast<Item*>(p.out) + t * p.out_row + i;
    if (p.live[t] != 0) {
      const Item fresh = static_cast<const Item*>(p.fresh)[t * p.fresh_row + i];
      *cached = fresh;
      *out = fresh;
    } else {
      *out = *cached;
    }
  }
}

}  // namespace
}  // namespace clover::native

CLOVER_KERNEL(clover_portable_live_row_routes, clover::native::LiveRowRoutesParams) {
  if (blockIdx.x == 0) {
    clover::native::list_rows(params);
  } else {
    clover::native::mask_routes(params);
  }
}

#define CLOVER_MERGE(bytes, Item)                                                       \
  CLOVER_KERNEL(clover_portable_merge_live_rows_##bytes, clover::native::MergeParams) { \
    clover::native::merge<Item>(params);                                                \
  }
CLOVER_MERGE(2, uint16_t)
CLOVER_MERGE(4, uint32_t)
CLOVER_MERGE(16, uint4)
