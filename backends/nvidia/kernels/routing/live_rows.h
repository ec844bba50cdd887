// Live rows on NVIDIA: what the kernels are given, and the plan of a call. Host code; no CUDA header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/kernels/native/launch.h"

namespace clover::nvidia {

struct LiveRowRoutesArgs {
  int64_t tokens = 0, top_k = 0;
  const int32_t* ids = nullptr;
  int64_t ids_row = 0;  // strides in elements
  const float* weights = nullptr;
  int64_t weights_row = 0;
  const uint8_t* live = nullptr;
  int32_t* live_ids = nullptr;
  int64_t live_ids_row = 0;
  float* live_weights = nullptr;
  int64_t live_weights_row = 0;
  int32_t* rows = nullptr;
  int32_t* count = nullptr;
};

struct MergeLiveRowsArgs {
  int64_t tokens = 0, width = 0, element_bytes = 2;  // 2 or 4
  const void* fresh = nullptr;
  int64_t fresh_row = 0;  // strides in elements
  void* cache = nullptr;
  int64_t cache_row = 0;
  const uint8_t* live = nullptr;
  void* out = nullptr;
  int64_t out_row = 0;
};

struct LiveRoutesParams {
  const int32_t* ids;
  const float* weights;
  const uint8_t* live;
  int32_t *live_ids, *rows, *count;
  float* live_weights;
  int64_t ids_row, weights_row, live_ids_row, live_weights_row;
  int32_t tokens, top_k;
};

struct MergeParams {
  const unsigned char* fresh;
  unsigned char *cache, *out;
  const uint8_t* live;
  int64_t fresh_row, cache_row, out_row;  // bytes
  int64_t tokens, pieces;                 // pieces of 16, 4 or 2 bytes in a row
};

namespace live_rows {
constexpr int kRoutesRows = 256;  // rows of a block of live_row_routes
constexpr int kMergeRows = 4;     // rows that a thread of merge_live_rows has in flight
constexpr int kMergeThreads = 256;
}  // namespace live_rows

// Both planners: the number of launches; 0 when there is nothing to do or, with a reason in *why_not, on refusal.
inline int plan_live_row_routes(const native::Machine&, const LiveRowRoutesArgs& a, native::Launch launches[],
                                int max_launches, const char** why_not) {
  *why_not = max_launches<1 ? "room for no launch" : a.tokens>(int64_t{1} << 30) ? "more than 2^30 tokens"
             : a.top_k > (int64_t{1} << 20)                                      ? "k above 2^20"
                                                                                 : nullptr;
  if (*why_not != nullptr) return 0;
  LiveRoutesParams p{};
  p.ids = a.ids, p.weights = a.weights, p.live = a.live, p.live_ids = a.live_ids, p.live_weights = a.live_weights;
  p.rows = a.rows, p.count = a.count;
  p.ids_row = a.ids_row, p.weights_row = a.weights_row;
  p.live_ids_row = a.live_ids_row, p.live_weights_row = a.live_weights_row;
  p.tokens = static_cast<int32_t>(a.tokens), p.top_k = static_cast<int32_t>(a.top_k);
  native::Launch launch{};
  launch.kernel = "clover_live_row_routes";
  // With no token there is still a count to write.
  launch.grid[0] =
      static_cast<uint32_t>(std::max<int64_t>(1, (a.tokens + live_rows::kRoutesRows - 1) / live_rows::kRoutesRows));
  launch.block[0] = live_rows::kRoutesRows;
  launch.set_params(p);
  launches[0] = launch;
  return 1;
}

inline int plan_merge_live_rows(const native::Machine&, const MergeLiveRowsArgs& a, native::Launch launches[],
                                int max_launches, const char** why_not) {
  *why_not = max_launches < 1                               ? "room for no launch"
             : a.element_bytes != 2 && a.element_bytes != 4 ? "elements of other than 2 or 4 bytes"
             : a.width > (int64_t{1} << 40)                 ? "rows of more than 2^40 elements"
                                                            : nullptr;
  if (*why_not != nullptr || a.tokens == 0 || a.width == 0) return 0;
  MergeParams p{};
  p.fresh = static_cast<const unsigned char*>(a.fresh);
  p.cache = static_cast<unsigned char*>(a.cache), p.out = static_cast<unsigned char*>(a.out);
  p.live = a.live;
  p.fresh_row = a.fresh_row * a.element_bytes, p.cache_row = a.cache_row * a.element_bytes;
  p.out_row = a.out_row * a.element_bytes;
  p.tokens = a.tokens;
  const int64_t bytes = a.width * a.element_bytes;
  // Every address and length, or'ed: its lowest bits say what the widest access may be.
  const uint64_t grid = reinterpret_cast<uintptr_t>(a.fresh) | reinterpret_cast<uintptr_t>(a.cache) |
                        reinterpret_cast<uintptr_t>(a.out) | static_cast<uint64_t>(p.fresh_row) |
                        static_cast<uint64_t>(p.cache_row) | static_cast<uint64_t>(p.out_row) |
                        static_cast<uint64_t>(bytes);
  const int piece = grid % 16 == 0 ? 16 : grid % 4 == 0 ? 4 : 2;
  p.pieces = bytes / piece;
  native::Launch launch{};
  launch.kernel = piece == 16  ? "clover_merge_live_rows_16"
                  : piece == 4 ? "clover_merge_live_rows_4"
                               : "clover_merge_live_rows_2";
  const int64_t groups = (a.tokens + live_rows::kMergeRows - 1) / live_rows::kMergeRows;
  const int64_t across = (p.pieces + live_rows::kMergeThreads - 1) / live_rows::kMergeThreads;
  launch.grid[0] = static_cast<uint32_t>(std::min<int64_t>(groups, 0x7fffffff));
  launch.grid[1] = static_cast<uint32_t>(std::min<int64_t>(across, 65535));
  launch.block[0] = live_rows::kMergeThreads;
  launch.set_params(p);
  launches[0] = launch;
  return 1;
}

}  // namespace clover::nvidia
