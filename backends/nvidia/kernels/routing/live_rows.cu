// Live rows: the routes of the rows that count, and outputs merged with a cache. One launch each.
#include "backends/nvidia/kernels/routing/live_rows.h"

namespace clover::nvidia::live_rows {

// Each block counts the live rows before its own itself (flags are a byte a row, and in L2), so blocks need not talk.
extern "C" __global__ void __launch_bounds__(kRoutesRows) clover_live_row_routes(const LiveRoutesParams p) {
  __shared__ int before_warp[kRoutesRows / 32], all_warp[kRoutesRows / 32], own_warp[kRoutesRows / 32];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int first = blockIdx.x * kRoutesRows, row = first + thread;
  int before = 0, all = 0;
#pragma unroll 4
  for (int r = thread; r < p.tokens; r += kRoutesRows) {
    const int live = p.live[r] != 0;
    all += live;
    before += r < first ? live : 0;
  }
  const bool live = row < p.tokens && p.live[row] != 0;
  const unsigned ballot = __ballot_sync(~0u, live);
  all = __reduce_add_sync(~0u, all);
  before = __reduce_add_sync(~0u, before);
  if (lane == 0) all_warp[warp] = all, before_warp[warp] = before, own_warp[warp] = __popc(ballot);
  __syncthreads();
  all = before = 0;
  for (int w = 0; w < kRoutesRows / 32; ++w) {
    all += all_warp[w];
    before += before_warp[w] + (w < warp ? own_warp[w] : 0);
  }
  if (live) p.rows[before + __popc(ballot & ((1u << lane) - 1))] = row;
  if (row < p.tokens && row >= all) p.rows[row] = -1;
  if (blockIdx.x == 0 && thread == 0) *p.count = all;

  const int rows = min(kRoutesRows, p.tokens - first);
  for (int64_t i = thread; i < static_cast<int64_t>(rows) * p.top_k; i += kRoutesRows) {
    const int r = first + static_cast<int>(i / p.top_k), j = static_cast<int>(i % p.top_k);
    const bool keep = p.live[r] != 0;
    p.live_ids[r * p.live_ids_row + j] = keep ? p.ids[r * p.ids_row + j] : -1;
    p.live_weights[r * p.live_weights_row + j] = keep ? p.weights[r * p.weights_row + j] : 0.0f;
  }
}

template <class Piece>
__device__ __forceinline__ void merge(const MergeParams& p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kMergeRows;
  for (int64_t first = blockIdx.x * static_cast<int64_t>(kMergeRows); first < p.tokens; first += step) {
    bool live[kMergeRows];
#pragma unroll
    for (int i = 0; i < kMergeRows; ++i) live[i] = first + i < p.tokens && p.live[first + i] != 0;
    for (int64_t c = blockIdx.y * static_cast<int64_t>(kMergeThreads) + threadIdx.x; c < p.pieces;
         c += static_cast<int64_t>(gridDim.y) * kMergeThreads) {
      Piece value[kMergeRows];
#pragma unroll
      for (int i = 0; i < kMergeRows; ++i) {
        const int64_t row = first + i;
        const unsigned char* from = live[i] ? p.fresh + row * p.fresh_row : p.cache + row * p.cache_row;
        if (row < p.tokens) value[i] = __ldcs(reinterpret_cast<const Piece*>(from) + c);
      }
#pragma unroll
      for (int i = 0; i < kMergeRows; ++i) {
        const int64_t row = first + i;
        if (row >= p.tokens) continue;
        reinterpret_cast<Piece*>(p.out + row * p.out_row)[c] = value[i];
        if (live[i]) reinterpret_cast<Piece*>(p.cache + row * p.cache_row)[c] = value[i];
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kMergeThreads) clover_merge_live_rows_16(const MergeParams p) {
  merge<uint4>(p);
}
extern "C" __global__ void __launch_bounds__(kMergeThreads) clover_merge_live_rows_4(const MergeParams p) {
  merge<uint32_t>(p);
}
extern "C" __global__ void __launch_bounds__(kMergeThreads) clover_merge_live_rows_2(const MergeParams p) {
  merge<uint16_t>(p);
}

}  // namespace clover::nvidia::live_rows
