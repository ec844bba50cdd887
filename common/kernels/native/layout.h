// rearrange and cast: any strided tensor into any other of its shape. Host code; the kernels are in layout.cu.
#pragma once

#include "plan.h"

namespace clover::native {

constexpr int kMaxCopyAxes = 6;

struct CopyAxis {
  int64_t size;
  int64_t from, to;  // strides of src and dst, in elements; may be negative, of src also 0
};

struct RearrangeArgs {
  const void* src = nullptr;
  void* dst = nullptr;
  int64_t element_bytes = 0;  // 1, 2, 4 or 8
  int axes = 0;
  CopyAxis axis[kMaxCopyAxes] = {};
};

struct CastArgs {
  const void* src = nullptr;
  void* dst = nullptr;
  DType from = DType::kFloat32, to = DType::kFloat32;
  int axes = 0;
  CopyAxis axis[kMaxCopyAxes] = {};
};

struct CopyParams {
  const void* src;
  void* dst;
  int64_t count;  // items: single elements, or the groups that one thread moves at once
  int32_t axes;   // at least 1; the last one is the innermost
  int32_t small;  // all indices fit 32 bits
  CopyAxis axis[kMaxCopyAxes];
};

constexpr int kCastGroup = 8;  // elements that a thread converts at once where rows are dense and aligned

// A transposing copy goes by square tiles: kTileSide x kTileSide patches, one a thread, of a few elements each way.
constexpr int kTileSide = 16;
static_assert(kTileSide * kTileSide == kBlockThreads, "one patch a thread");

// The last axis runs through dst in unit stride, the one before it through src; `count` is the number of tiles.
struct TransposeParams {
  CopyParams copy;
  int64_t tiles_from, tiles_to;  // tiles along the axis that src, and that dst, runs through
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

namespace layout {

inline int64_t magnitude(int64_t value) {
  return value < 0 ? -value : value;
}

// Axes of one element dropped, the densest of dst last, neighbours joined wherever both sides run through them in one
// stride. Returns how many items there are.
inline int64_t coalesce(const CopyAxis* given, int axes, CopyParams* params) {
  CopyAxis* axis = params->axis;
  int count = 0;
  int64_t items = 1;
  for (int i = 0; i < axes; ++i) {
    items *= given[i].size;
    if (given[i].size == 1) continue;
    int place = count++;
    for (; place > 0 && magnitude(axis[place - 1].to) < magnitude(given[i].to); --place) axis[place] = axis[place - 1];
    axis[place] = given[i];
  }
  if (count == 0) axis[count++] = {1, 1, 1};
  int last = 0;
  for (int i = 1; i < count; ++i) {
    CopyAxis& outer = axis[last];
    const CopyAxis inner = axis[i];
    if (outer.from == inner.from * inner.size && outer.to == inner.to * inner.size) {
      outer = {outer.size * inner.size, inner.from, inner.to};
    } else {
      axis[++last] = inner;
    }
  }
  params->axes = last + 1;
  params->count = items;
  params->small = items <= 0x7fffffff;
  return items;
}

// Whether groups of `group` neighbouring elements can be moved as one.
inline bool comes_in_groups(const CopyParams& p, int64_t group) {
  const CopyAxis& inner = p.axis[p.axes - 1];
  if (inner.from != 1 || inner.to != 1 || inner.size % group != 0) return false;
  for (int i = 0; i + 1 < p.axes; ++i) {
    if (p.axis[i].from % group != 0 || p.axis[i].to % group != 0) return false;
  }
  return true;
}

// Brings the axis that src runs through beside the one that dst runs through. False where there are no two such axes,
// or too little in them for tiles.
inline bool order_for_tiles(CopyParams* p) {
  constexpr int64_t kLeast = kTileSide / 2;
  const int last = p->axes - 1;
  const CopyAxis inner = p->axis[last];
  if (inner.to != 1 || inner.from == 1 || inner.size < kLeast) return false;
  for (int i = 0; i < last; ++i) {
    const CopyAxis outer = p->axis[i];
    if (outer.from != 1 || outer.size < kLeast) continue;
    for (int j = i; j + 1 < last; ++j) p->axis[j] = p->axis[j + 1];
    p->axis[last - 1] = outer;
    return true;
  }
  return false;
}

// How many elements each way a thread moves: as many as fit 16 bytes, at most 4, or one where something is not aligned.
inline int patch_side(const CopyParams& p, int64_t bytes) {
  const int side = bytes == 8 ? 2 : 4;
  const CopyAxis &inner = p.axis[p.axes - 1], &outer = p.axis[p.axes - 2];
  bool fits = is_aligned(p.src, side * bytes) && is_aligned(p.dst, side * bytes);
  fits = fits && inner.size % side == 0 && outer.size % side == 0 && inner.from % side == 0 && outer.to % side == 0;
  for (int i = 0; i + 2 < p.axes; ++i) fits = fits && p.axis[i].from % side == 0 && p.axis[i].to % side == 0;
  return fits ? side : 1;
}

inline Launch transpose_launch(const Machine& machine, const CopyParams& copy, int64_t bytes) {
  const int side = patch_side(copy, bytes);
  TransposeParams p{copy, divide_up(copy.axis[copy.axes - 2].size, kTileSide * side),
                    divide_up(copy.axis[copy.axes - 1].size, kTileSide * side)};
  p.copy.count = p.tiles_from * p.tiles_to;
  for (int i = 0; i + 2 < copy.axes; ++i) p.copy.count *= copy.axis[i].size;
  static const char* const names[4][2] = {{"clover_portable_transpose_1", "clover_portable_transpose_1_x4"},
                                          {"clover_portable_transpose_2", "clover_portable_transpose_2_x4"},
                                          {"clover_portable_transpose_4", "clover_portable_transpose_4_x4"},
                                          {"clover_portable_transpose_8", "clover_portable_transpose_8_x2"}};
  const int size = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  const int64_t most = int64_t{32} * (machine.multiprocessors > 0 ? machine.multiprocessors : 1);
  return make_launch(names[size][side != 1], p.copy.count < most ? p.copy.count : most, p);
}

}  // namespace layout

inline int plan_rearrange(const Machine& machine, const RearrangeArgs& args, Launch out[], int max,
                          const char** why_not) {
  *why_not = nullptr;
  if (max < 1) return refuse(why_not, "room for no launch");
  if (args.axes < 0 || args.axes > kMaxCopyAxes) return refuse(why_not, "more than 6 axes");
  CopyParams p{};
  p.src = args.src, p.dst = args.dst;
  if (layout::coalesce(args.axis, args.axes, &p) == 0) return 0;
  int64_t bytes = args.element_bytes;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
    return refuse(why_not, "elements of 1, 2, 4 or 8 bytes only");
  if (layout::order_for_tiles(&p)) {
    out[0] = layout::transpose_launch(machine, p, bytes);
    return 1;
  }
  // Wider items as long as rows are made of them.
  while (bytes < 16 && layout::comes_in_groups(p, 2) && is_aligned(p.src, 2 * bytes) && is_aligned(p.dst, 2 * bytes)) {
    for (int i = 0; i + 1 < p.axes; ++i) p.axis[i].from /= 2, p.axis[i].to /= 2;
    p.axis[p.axes - 1].size /= 2;
    p.count /= 2;
    bytes *= 2;
  }
  p.small = p.count <= 0x7fffffff;
  const char* kernel = bytes == 1   ? "clover_portable_rearrange_1"
                       : bytes == 2 ? "clover_portable_rearrange_2"
                       : bytes == 4 ? "clover_portable_rearrange_4"
                       : bytes == 8 ? "clover_portable_rearrange_8"
                                    : "clover_portable_rearrange_16";
  out[0] = make_launch(kernel, loop_blocks(machine, p.count), p);
  return 1;
}

inline int plan_cast(const Machine& machine, const CastArgs& args, Launch out[], int max, const char** why_not) {
  *why_not = nullptr;
  if (args.from == args.to) {
    RearrangeArgs copy{args.src, args.dst, element_bytes(args.from), args.axes, {}};
    for (int i = 0; i < kMaxCopyAxes; ++i) copy.axis[i] = args.axis[i];
    return plan_rearrange(machine, copy, out, max, why_not);
  }
  if (max < 1) return refuse(why_not, "room for no launch");
  if (args.axes < 0 || args.axes > kMaxCopyAxes) return refuse(why_not, "more than 6 axes");
  CopyParams p{};
  p.src = args.src, p.dst = args.dst;
  if (layout::coalesce(args.axis, args.axes, &p) == 0) return 0;
  const bool grouped = layout::comes_in_groups(p, kCastGroup) && is_aligned(p.src) && is_aligned(p.dst);
  if (grouped) {
    CopyAxis& inner = p.axis[p.axes - 1];
    inner = {inner.size / kCastGroup, kCastGroup, kCastGroup};
    p.count /= kCastGroup;
    p.small = p.count <= 0x7fffffff;
  }
  static const char* const names[3][3][2] = {{{nullptr, nullptr},
                                              {"clover_portable_cast_f32_bf16", "clover_portable_cast_f32_bf16_x8"},
                                              {"clover_portable_cast_f32_f16", "clover_portable_cast_f32_f16_x8"}},
                                             {{"clover_portable_cast_bf16_f32", "clover_portable_cast_bf16_f32_x8"},
                                              {nullptr, nullptr},
                                              {"clover_portable_cast_bf16_f16", "clover_portable_cast_bf16_f16_x8"}},
                                             {{"clover_portable_cast_f16_f32", "clover_portable_cast_f16_f32_x8"},
                                              {"clover_portable_cast_f16_bf16", "clover_portable_cast_f16_bf16_x8"},
                                              {nullptr, nullptr}}};
  const char* kernel = names[static_cast<int>(args.from)][static_cast<int>(args.to)][grouped];
  out[0] = make_launch(kernel, loop_blocks(machine, p.count), p);
  return 1;
}

#endif

}  // namespace clover::native
