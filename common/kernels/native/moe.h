// fused_moe. Host code; the kernels are in moe.cu.
//
// Launches: the routes sorted by expert; for each expert its rows times w1 and w3, then times w2, tile by tile; the
// same for the shared expert; and each token's weighted sum. Route r = t * k + j keeps its number throughout.
#pragma once

#include "plan.h"

namespace clover::native {

constexpr int kMoeColumns = 64;   // of a tile
constexpr int kMoeDepth = 32;     // of a step
constexpr int kMoeGroup = 8;      // elements that a thread fetches at once
constexpr int kMoeFewRows = 8;    // rows of a tile where experts have few routes, and
constexpr int kMoeManyRows = 32;  // where they have many

struct FusedMoeArgs {
  DType dtype = DType::kFloat32;
  int64_t tokens = 0, hidden = 0, intermediate = 0, experts = 0, top_k = 0;
  int64_t shared_intermediate = 0;
  const void* x = nullptr;
  int64_t x_row = 0;  // strides in elements; the last axis has unit stride
  const void* w13 = nullptr;
  int64_t w13_expert = 0, w13_row = 0;
  const void* w2 = nullptr;
  int64_t w2_expert = 0, w2_row = 0;
  const int32_t* ids = nullptr;
  int64_t ids_row = 0;
  const float* weights = nullptr;
  int64_t weights_row = 0;
  const void* shared_w13 = nullptr;  // null: no shared expert
  int64_t shared_w13_row = 0;
  const void* shared_w2 = nullptr;
  int64_t shared_w2_row = 0;
  const void* shared_gate = nullptr;  // null: none
  void* y = nullptr;
  int64_t y_row = 0;
  float routed_scale = 1.0f;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

struct MoeSortParams {
  const int32_t* ids;
  int64_t ids_row, tokens, top_k, experts;
  int32_t* first;  // [experts + 1]: where each expert's routes begin in `order`
  int32_t* order;  // the routes by expert
};

// Rows of `a` times the transpose of an expert's matrix, or of two of them.
struct MoeProductParams {
  const void* a;
  const void* b;
  void* c;
  int64_t a_row, b_expert, b_row, c_row;
  int64_t b_second;  // from the first matrix to the second, where there are two
  int64_t depth, width;
  const int32_t* first;  // null: one expert, with all rows in order
  const int32_t* order;
  int64_t rows;     // where `first` is null
  int64_t divisor;  // route r takes row r / divisor of `a`
  int64_t column_tiles, splits;
  int32_t aligned;  // groups of kMoeGroup can be fetched at once
};

struct MoeSumParams {
  const int32_t* ids;
  const float* weights;
  const float* partial;         // [tokens * top_k, hidden]
  const float* shared_partial;  // [tokens, hidden]; null: none
  const void* x;
  const void* shared_gate;  // null: none
  void* y;
  int64_t ids_row, weights_row, x_row, y_row;
  int64_t tokens, top_k, experts, hidden;
  float routed_scale;
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

namespace moe {

struct Parts {
  int32_t *first, *order;
  void *inner, *shared_inner;  // in the data's type
  float *partial, *shared_partial;
  size_t bytes;

  Parts(const FusedMoeArgs& a, void* memory) {
    WorkspaceParts parts(memory);
    const int64_t routes = a.tokens * a.top_k, shared_rows = a.shared_w13 == nullptr ? 0 : a.tokens;
    first = parts.take<int32_t>(a.experts + 1);
    order = parts.take<int32_t>(routes);
    inner = parts.take<char>(routes * a.intermediate * element_bytes(a.dtype));
    shared_inner = parts.take<char>(shared_rows * a.shared_intermediate * element_bytes(a.dtype));
    partial = parts.take<float>(routes * a.hidden);
    shared_partial = parts.take<float>(shared_rows * a.hidden);
    bytes = parts.bytes();
  }
};

inline bool in_groups(const MoeProductParams& p) {
  for (int64_t stride : {p.depth, p.a_row, p.b_expert, p.b_row, p.b_second}) {
    if (stride % kMoeGroup != 0) return false;
  }
  return is_aligned(p.a) && is_aligned(p.b);
}

// Rows of different experts may be few or many, and only the device knows: blocks that find none leave at once.
inline Launch product_launch(MoeProductParams p, DType dtype, bool up, int64_t rows, int64_t experts) {
  const bool few = rows <= 4 * experts;
  const int64_t tiles = divide_up(rows, (few ? kMoeFewRows : kMoeManyRows) * (experts > 1 ? 16 : 1));
  p.splits = tiles < 8 ? tiles : 8;
  if (experts == 1) p.splits = tiles < 256 ? tiles : 256;
  p.column_tiles = divide_up(p.width, kMoeColumns);
  p.aligned = in_groups(p);
  const DTypeNames names =
      up    ? few ? CLOVER_DTYPE_NAMES("clover_portable_moe_up_8") : CLOVER_DTYPE_NAMES("clover_portable_moe_up_32")
      : few ? CLOVER_DTYPE_NAMES("clover_portable_moe_down_8")
            : CLOVER_DTYPE_NAMES("clover_portable_moe_down_32");
  return make_launch(names.of(dtype), experts * p.column_tiles * p.splits, p);
}

// Both products of the routed experts, or of the shared one; returns how many launches there are.
inline int plan_expert(const FusedMoeArgs& a, const Parts& parts, bool shared, Launch out[]) {
  const int64_t rows = shared ? a.tokens : a.tokens * a.top_k, experts = shared ? 1 : a.experts;
  const int64_t inner = shared ? a.shared_intermediate : a.intermediate;
  int count = 0;
  MoeProductParams up{};
  up.a = a.x, up.a_row = a.x_row, up.divisor = shared ? 1 : a.top_k;
  up.b = shared ? a.shared_w13 : a.w13;
  up.b_expert = shared ? 0 : a.w13_expert, up.b_row = shared ? a.shared_w13_row : a.w13_row;
  up.b_second = inner * up.b_row;
  up.c = shared ? parts.shared_inner : parts.inner, up.c_row = inner;
  up.depth = a.hidden, up.width = inner;
  up.first = shared ? nullptr : parts.first, up.order = parts.order, up.rows = rows;
  if (inner > 0) out[count++] = product_launch(up, a.dtype, true, rows, experts);

  MoeProductParams down{};
  down.a = up.c, down.a_row = inner, down.divisor = 1;
  down.b = shared ? a.shared_w2 : a.w2;
  down.b_expert = shared ? 0 : a.w2_expert, down.b_row = shared ? a.shared_w2_row : a.w2_row;
  down.c = shared ? parts.shared_partial : parts.partial, down.c_row = a.hidden;
  down.depth = inner, down.width = a.hidden;
  down.first = up.first, down.order = up.order, down.rows = rows;
  out[count++] = product_launch(down, a.dtype, false, rows, experts);
  return count;
}

}  // namespace moe

inline size_t fused_moe_workspace_bytes(const FusedMoeArgs& args) {
  return moe::Parts(args, nullptr).bytes;
}

inline int plan_fused_moe(const Machine&, const FusedMoeArgs& a, Launch out[], int max, const char** why_not) {
  *why_not = nullptr;
  if (max < 6) return refuse(why_not, "room for fewer than six launches");
  if (a.tokens * a.top_k > 0x7fffffff) return refuse(why_not, "more than 2^31 routes");
  if (a.tokens > kMaxGrid) return refuse(why_not, "more than 2^31 tokens");
  if (a.experts * divide_up(a.hidden > a.intermediate ? a.hidden : a.intermediate, kMoeColumns) > kMaxGrid / 8) {
    return refuse(why_not, "too many experts for one launch");
  }
  const moe::Parts parts(a, a.workspace);
  if (a.workspace_bytes < parts.bytes) return refuse(why_not, "the workspace is too small");
  if (a.tokens == 0 || a.hidden == 0) return 0;

  int count = 0;
  if (a.top_k > 0 && a.experts > 0) {
    const MoeSortParams sort{a.ids, a.ids_row, a.tokens, a.top_k, a.experts, parts.first, parts.order};
    out[count++] = make_launch("clover_portable_moe_sort", a.experts, sort);
    count += moe::plan_expert(a, parts, false, out + count);
  }
  const bool shared = a.shared_w13 != nullptr;
  if (shared) count += moe::plan_expert(a, parts, true, out + count);

  MoeSumParams sum{};
  sum.ids = a.ids, sum.ids_row = a.ids_row, sum.weights = a.weights, sum.weights_row = a.weights_row;
  sum.partial = parts.partial, sum.shared_partial = shared ? parts.shared_partial : nullptr;
  sum.x = a.x, sum.x_row = a.x_row, sum.shared_gate = a.shared_gate, sum.y = a.y, sum.y_row = a.y_row;
  sum.tokens = a.tokens, sum.top_k = a.top_k, sum.experts = a.experts, sum.hidden = a.hidden;
  sum.routed_scale = a.routed_scale;
  out[count++] = make_launch(CLOVER_DTYPE_NAMES("clover_portable_moe_sum").of(a.dtype), a.tokens, sum);
  return count;
}

#endif

}  // namespace clover::native
