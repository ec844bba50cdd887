// live_row_routes and merge_live_rows. Host code; the kernels are in live_rows.cu.
#pragma once

#include "plan.h"

namespace clover::native {

// ---- live_row_routes ----

// Row strides in elements.
struct LiveRowRoutesParams {
  const int32_t* ids;
  const float* weights;
  const uint8_t* live;
  int32_t* live_ids;
  float* live_weights;
  int32_t* rows;
  int32_t* count;
  int64_t ids_row, weights_row, live_ids_row, live_weights_row;
  int64_t tokens, top_k;
};

struct LiveRowRoutesArgs {
  LiveRowRoutesParams call = {};
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

// The first block lists the rows, the others mask the routes. `count` is written even when there is no token.
inline int plan_live_row_routes(const Machine& machine, const LiveRowRoutesArgs& args, Launch out[], int max,
                                const char** why_not) {
  *why_not = nullptr;
  if (max < 1) return refuse(why_not, "room for no launch");
  if (args.call.tokens > 0x7fffffff) return refuse(why_not, "more tokens than an int32 row can name");
  out[0] = make_launch("clover_portable_live_row_routes", 1 + loop_blocks(machine, args.call.tokens * args.call.top_k),
                       args.call);
  return 1;
}

#endif

// ---- merge_live_rows ----

struct MergeLiveRowsArgs {
  int64_t tokens = 0, width = 0, element_bytes = 0;
  const void* fresh = nullptr;
  int64_t fresh_row = 0;  // strides in elements
  void* cache = nullptr;
  int64_t cache_row = 0;
  const uint8_t* live = nullptr;
  void* out = nullptr;
  int64_t out_row = 0;
};

// Widths and strides in items: elements, or 16 bytes.
struct MergeParams {
  const void* fresh;
  void* cache;
  const uint8_t* live;
  void* out;
  int64_t fresh_row, cache_row, out_row, tokens, width;
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

inline int plan_merge_live_rows(const Machine& machine, const MergeLiveRowsArgs& a, Launch out[], int max,
                                const char** why_not) {
  *why_not = nullptr;
  if (max < 1) return refuse(why_not, "room for no launch");
  if (a.element_bytes != 2 && a.element_bytes != 4) return refuse(why_not, "elements of 2 or 4 bytes only");
  if (a.tokens * a.width == 0) return 0;
  const int64_t group = 16 / a.element_bytes;
  const bool groups = is_aligned(a.fresh) && is_aligned(a.cache) && is_aligned(a.out) && a.fresh_row % group == 0 &&
                      a.cache_row % group == 0 && a.out_row % group == 0 && a.width % group == 0;
  const int64_t items = groups ? group : 1;
  const MergeParams p{a.fresh,           a.cache,  a.live,         a.out, a.fresh_row / items, a.cache_row / items,
                      a.out_row / items, a.tokens, a.width / items};
  const char* kernel = groups                 ? "clover_portable_merge_live_rows_16"
                       : a.element_bytes == 2 ? "clover_portable_merge_live_rows_2"
                                              : "clover_portable_merge_live_rows_4";
  out[0] = make_launch(kernel, loop_blocks(machine, p.tokens * p.width), p);
  return 1;
}

#endif

}  // namespace clover::native
