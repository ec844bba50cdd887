// The mixture of experts on NVIDIA: what its kernels are given, and the plan of a call. Host code; no CUDA header.
//
// Three ways, each `sort` first and the products after it:
//   stream   few tokens per expert, 16-bit data: one persistent kernel runs both products and the weighted sum, and
//            keeps the weights flowing across the steps (moe_stream.cuh)
//   tile     many tokens per expert, 16-bit data: two grouped matrix products and the sum (moe_tile.cuh)
//   plain    everything else: FP32 data, rows that are not 16-byte aligned, sizes that are no multiple of 8
// The sort lists, per expert, the routes that go there, cut into entries of at most `entry_tokens` routes; a product
// reads an expert's weights once per entry. The shared expert is expert E, and its entries come first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/kernels/native/launch.h"

namespace clover::nvidia {

struct FusedMoeArgs {
  native::DType dtype = native::DType::kBFloat16;
  int64_t tokens = 0, hidden = 0, intermediate = 0, experts = 0, top_k = 0;
  int64_t shared_intermediate = 0;  // 0: no shared expert
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
  const void* shared_w13 = nullptr;
  int64_t shared_w13_row = 0;
  const void* shared_w2 = nullptr;
  int64_t shared_w2_row = 0;
  const void* shared_gate = nullptr;
  void* y = nullptr;
  int64_t y_row = 0;
  float routed_scale = 1.0f;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

// Up to `count` routes of one expert: positions first … first + count - 1 of the sorted routes, or of tokens for the
// shared expert, which is number E.
struct alignas(16) MoeEntry {
  int32_t expert, first, count, unused;
};

enum MoeHead { kTickets = 0, kUpDone = 32, kDownDone = 64, kEntries = 96, kHeadInts = 128 };  // a cache line each

struct MoeParams {
  const void *x, *w13, *w2, *shared_w13, *shared_w2, *shared_gate;
  const int32_t* ids;
  const float* weights;
  void* y;
  int64_t x_row, w13_expert, w13_row, w2_expert, w2_row, ids_row, weights_row, shared_w13_row, shared_w2_row, y_row;
  int32_t* head;  // MoeHead
  MoeEntry* entries;
  int32_t* order;         // sorted position -> route t * k + j
  int32_t* ranks;         // the sort's scratch
  float* gates;           // sigmoid(x . shared_gate), or 1
  void* inner;            // [T * k, I] silu(gate) * up by sorted position, in x's type
  void* shared_inner;     // [T, Is]
  float* partial;         // [T * k, D] each route's output, before its weight
  float* shared_partial;  // [T, D]
  int32_t tokens, top_k, experts, hidden, intermediate, shared_intermediate;
  int32_t dtype, entry_tokens, shared_entries, max_entries;
  int32_t group;                                      // stream: 16-row tiles of w13 in one ticket
  int32_t down_rows;                                  // stream: rows of w2 in one ticket
  int32_t down_slices_log2, shared_down_slices_log2;  // stream: warps along the second product's inner dimension
  int32_t stage_order;                                // sort: room for the whole order in shared memory
  float routed_scale;
};

namespace moe {

constexpr int kStreamTokens = 16;  // tokens of a stream entry
constexpr int kStreamThreads = 384;
constexpr int64_t kStreamPairBytes = 32768;  // a pair of chunks, of all eight streaming warps
constexpr int kStreamMaxRoutes = 2048;
constexpr int kStreamResultBytes = 24576;
constexpr int kStreamControlBytes = 2048;
constexpr int kStreamEntryBytes = 8;
constexpr int kPlainTokens = 32;
constexpr int kMaxExperts = 8192;
constexpr int kMaxLaunches = 4;
constexpr int64_t kMaxRoutes = int64_t{1} << 26;
constexpr int64_t kMaxWidth = int64_t{1} << 20;

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

inline int64_t max_routed_entries(int64_t routes, int64_t experts, int64_t entry_tokens) {
  return std::min(experts, routes) + routes / entry_tokens;
}

struct Layout {
  size_t head, entries, order, ranks, gates, inner, shared_inner, partial, shared_partial, total;
};

inline Layout lay_out(int64_t tokens, int64_t top_k, int64_t experts, int64_t hidden, int64_t intermediate,
                      int64_t shared_intermediate, native::DType dtype) {
  const size_t element = dtype == native::DType::kFloat32 ? 4 : 2;
  const size_t routes = static_cast<size_t>(tokens) * top_k;
  const bool shared = shared_intermediate > 0;
  const size_t entries = max_routed_entries(routes, experts, kStreamTokens) + ceil_div(tokens, kStreamTokens);
  Layout layout{};
  size_t at = 0;
  auto take = [&at](size_t bytes) {
    size_t start = at;
    at += (bytes + 255) / 256 * 256;
    return start;
  };
  layout.head = take(kHeadInts * sizeof(int32_t));
  layout.entries = take(entries * sizeof(MoeEntry));
  layout.order = take(routes * sizeof(int32_t));
  layout.ranks = take(routes * sizeof(int32_t));
  layout.gates = take(shared ? tokens * sizeof(float) : 0);
  layout.inner = take(routes * intermediate * element);
  layout.shared_inner = take(shared ? tokens * shared_intermediate * element : 0);
  layout.partial = take(routes * hidden * sizeof(float));
  layout.shared_partial = take(shared ? tokens * hidden * sizeof(float) : 0);
  layout.total = at;
  return layout;
}

inline bool aligned_rows(const void* pointer, int64_t row) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0 && row % 8 == 0;
}

// 16-bit data whose every row starts at a multiple of 16 bytes: what the matrix kernels need.
inline bool suits_matrix_units(const FusedMoeArgs& a) {
  if (a.dtype == native::DType::kFloat32 || a.intermediate == 0) return false;
  if (a.hidden % 8 || a.intermediate % 8 || a.shared_intermediate % 8) return false;
  if (!aligned_rows(a.x, a.x_row) || !aligned_rows(a.w13, a.w13_row) || !aligned_rows(a.w2, a.w2_row)) return false;
  if (a.w13_expert % 8 || a.w2_expert % 8) return false;
  return a.shared_intermediate == 0 ||
         (aligned_rows(a.shared_w13, a.shared_w13_row) && aligned_rows(a.shared_w2, a.shared_w2_row));
}

// How the stream kernel's eight warps share the inner dimension of the second product: in 1, 2, 4 or 8 slices.
inline int down_slices_log2(int64_t intermediate) {
  int log2 = 0;
  while (log2 < 3 && (int64_t{256} << log2) < intermediate) ++log2;
  return log2;
}

// Which way a call goes; from its shapes, types and alignment alone.
enum class Way { kStream, kTile, kWgmma64, kWgmma192, kPlain };

inline int entry_tokens(Way way) {
  switch (way) {
    case Way::kStream:
      return kStreamTokens;
    case Way::kWgmma192:
      return 192;
    case Way::kPlain:
      return kPlainTokens;
    default:
      return 64;
  }
}

// Length of the stream's ring, 6, 4 or 2: what fits beside the results and the lists of entries and routes; else 0.
inline int stream_ring(const native::Machine& machine, int64_t max_entries, int64_t routes) {
  const int64_t beside = kStreamResultBytes + kStreamControlBytes + max_entries * kStreamEntryBytes + routes * 2 + 16;
  const int64_t pairs = (machine.shared_bytes_optin - beside) / kStreamPairBytes;
  return pairs >= 6 ? 6 : pairs >= 4 ? 4 : pairs >= 2 ? 2 : 0;
}

inline int64_t max_entries(const FusedMoeArgs& a, Way way) {
  const int64_t shared = a.shared_intermediate > 0 ? ceil_div(a.tokens, entry_tokens(way)) : 0;
  return shared + max_routed_entries(a.tokens * a.top_k, a.experts, entry_tokens(way));
}

inline Way choose_way(const native::Machine& machine, const FusedMoeArgs& a) {
  if (!suits_matrix_units(a)) return Way::kPlain;
  const int64_t routes = a.tokens * a.top_k;
  const bool few = routes <= kStreamMaxRoutes && routes <= 12 * a.experts && a.tokens <= 512;
  if (few && stream_ring(machine, max_entries(a, Way::kStream), routes) > 0) return Way::kStream;
  if (machine.compute_capability != 90) return Way::kTile;
  return routes > 48 * a.experts ? Way::kWgmma192 : Way::kWgmma64;
}

inline MoeParams make_params(const FusedMoeArgs& a, Way way) {
  const Layout layout = lay_out(a.tokens, a.top_k, a.experts, a.hidden, a.intermediate, a.shared_intermediate, a.dtype);
  auto* base = static_cast<unsigned char*>(a.workspace);
  MoeParams p{};
  p.x = a.x, p.w13 = a.w13, p.w2 = a.w2, p.ids = a.ids, p.weights = a.weights, p.y = a.y;
  p.shared_w13 = a.shared_w13, p.shared_w2 = a.shared_w2, p.shared_gate = a.shared_gate;
  p.x_row = a.x_row, p.w13_expert = a.w13_expert, p.w13_row = a.w13_row;
  p.w2_expert = a.w2_expert, p.w2_row = a.w2_row, p.ids_row = a.ids_row, p.weights_row = a.weights_row;
  p.shared_w13_row = a.shared_w13_row, p.shared_w2_row = a.shared_w2_row, p.y_row = a.y_row;
  p.head = reinterpret_cast<int32_t*>(base + layout.head);
  p.entries = reinterpret_cast<MoeEntry*>(base + layout.entries);
  p.order = reinterpret_cast<int32_t*>(base + layout.order);
  p.ranks = reinterpret_cast<int32_t*>(base + layout.ranks);
  p.gates = reinterpret_cast<float*>(base + layout.gates);
  p.inner = base + layout.inner, p.shared_inner = base + layout.shared_inner;
  p.partial = reinterpret_cast<float*>(base + layout.partial);
  p.shared_partial = reinterpret_cast<float*>(base + layout.shared_partial);
  p.tokens = static_cast<int32_t>(a.tokens), p.top_k = static_cast<int32_t>(a.top_k);
  p.experts = static_cast<int32_t>(a.experts), p.hidden = static_cast<int32_t>(a.hidden);
  p.intermediate = static_cast<int32_t>(a.intermediate);
  p.shared_intermediate = static_cast<int32_t>(a.shared_intermediate);
  p.dtype = static_cast<int32_t>(a.dtype);
  p.entry_tokens = entry_tokens(way);
  p.shared_entries = a.shared_intermediate > 0 ? static_cast<int32_t>(ceil_div(a.tokens, p.entry_tokens)) : 0;
  p.max_entries = static_cast<int32_t>(max_entries(a, way));
  p.routed_scale = a.routed_scale;
  // A ticket is one step (64 KB of weights at most), or two, which can share what they load of the tokens.
  const int64_t routes = a.tokens * a.top_k;
  p.group = routes <= 32 ? 1 : 2;
  p.down_slices_log2 = down_slices_log2(a.intermediate);
  p.shared_down_slices_log2 = a.shared_intermediate > 0 ? down_slices_log2(a.shared_intermediate) : p.down_slices_log2;
  p.down_rows = (128 >> std::min(p.down_slices_log2, p.shared_down_slices_log2)) * p.group;
  return p;
}

inline void set_launch(native::Launch& launch, const char* kernel, const MoeParams& p, int64_t grid_x, int64_t grid_y,
                       int threads, size_t shared_bytes) {
  launch = native::Launch{};
  launch.kernel = kernel;
  launch.grid[0] = static_cast<uint32_t>(grid_x);
  launch.grid[1] = static_cast<uint32_t>(grid_y);
  launch.block[0] = static_cast<uint32_t>(threads);
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes);
  launch.set_params(p);
}

inline void plan_sort(const native::Machine& machine, native::Launch& launch, const FusedMoeArgs& a, MoeParams p) {
  const int64_t routes = a.tokens * a.top_k;
  int threads = 256;
  while (threads < 1024 && threads < std::max(routes / 2, a.experts)) threads *= 2;
  const int64_t gate_blocks = p.shared_entries > 0 ? ceil_div(a.tokens, threads / 32) : 0;
  const int64_t counts = 2 * a.experts * 4, staged = counts + routes * 4;
  p.stage_order = routes > 1024 && staged + 1024 <= machine.shared_bytes_optin;
  set_launch(launch, "clover_moe_sort", p, 1 + gate_blocks, 1, threads, p.stage_order ? staged : counts);
}

inline int plan_stream(const native::Machine& machine, const FusedMoeArgs& a, const MoeParams& p,
                       native::Launch launches[]) {
  static const char* const names[2][3] = {
      {"clover_moe_stream_bf16_2", "clover_moe_stream_bf16_4", "clover_moe_stream_bf16_6"},
      {"clover_moe_stream_f16_2", "clover_moe_stream_f16_4", "clover_moe_stream_f16_6"}};
  const int64_t routes = a.tokens * a.top_k;
  const int ring = stream_ring(machine, p.max_entries, routes);
  const int64_t bytes = ring * kStreamPairBytes + kStreamResultBytes + kStreamControlBytes +
                        p.max_entries * kStreamEntryBytes + routes * 2;
  set_launch(launches[1], names[a.dtype == native::DType::kFloat16][ring / 2 - 1], p, machine.multiprocessors, 1,
             kStreamThreads, bytes);
  return 2;
}

inline int plan_tiles(const native::Machine& machine, const FusedMoeArgs& a, const MoeParams& p, Way way,
                      native::Launch launches[]) {
  struct Kernel {
    const char* names[2];  // bf16, f16
    int threads, stages, blocks;
  };
  static const Kernel kernels[3][2] = {
      {{{"clover_moe_tile_up_bf16", "clover_moe_tile_up_f16"}, 256, 4, 1},
       {{"clover_moe_tile_down_bf16", "clover_moe_tile_down_f16"}, 256, 4, 1}},
      {{{"clover_moe_wgmma64_up_bf16", "clover_moe_wgmma64_up_f16"}, 256, 8, 1},
       {{"clover_moe_wgmma64_down_bf16", "clover_moe_wgmma64_down_f16"}, 256, 4, 2}},
      {{{"clover_moe_wgmma192_up_bf16", "clover_moe_wgmma192_up_f16"}, 512, 4, 1},
       {{"clover_moe_wgmma192_down_bf16", "clover_moe_wgmma192_down_f16"}, 512, 4, 1}}};
  const int half = a.dtype == native::DType::kFloat16;
  for (int product = 0; product < 2; ++product) {
    const Kernel& kernel = kernels[static_cast<int>(way) - static_cast<int>(Way::kTile)][product];
    // A stage is 128 bytes of threads / 2 rows of weights and of the tokens; 1024 more to align it.
    const size_t bytes = kernel.stages * (kernel.threads / 2 + p.entry_tokens) * 128 + 1024;
    set_launch(launches[1 + product], kernel.names[half], p, machine.multiprocessors * kernel.blocks, 1, kernel.threads,
               bytes);
  }
  static const char* const sum[2] = {"clover_moe_sum_bf16", "clover_moe_sum_f16"};
  set_launch(launches[3], sum[half], p, ceil_div(a.tokens * ceil_div(a.hidden, 256), 8), 1, 256, 0);
  return 4;
}

inline int plan_plain(const FusedMoeArgs& a, const MoeParams& p, native::Launch launches[]) {
  static const char* const up[3] = {"clover_moe_plain_up_f32", "clover_moe_plain_up_bf16", "clover_moe_plain_up_f16"};
  static const char* const down[3] = {"clover_moe_plain_down_f32", "clover_moe_plain_down_bf16",
                                      "clover_moe_plain_down_f16"};
  static const char* const sum[3] = {"clover_moe_plain_sum_f32", "clover_moe_plain_sum_bf16",
                                     "clover_moe_plain_sum_f16"};
  const int type = static_cast<int>(a.dtype);
  const int64_t entries = std::max(p.max_entries, 1);
  const int64_t rows = std::max<int64_t>({a.intermediate, a.shared_intermediate, 1});
  set_launch(launches[1], up[type], p, entries, ceil_div(rows, 32), 256, 0);
  set_launch(launches[2], down[type], p, entries, ceil_div(a.hidden, 64), 256, 0);
  set_launch(launches[3], sum[type], p, ceil_div(a.hidden, 256), std::min<int64_t>(a.tokens, 65535), 256, 0);
  return 4;
}

inline const char* refusal(const native::Machine& machine, const FusedMoeArgs& a, int max_launches) {
  if (machine.warp_size != 32) return "the NVIDIA mixture of experts needs 32 lanes a warp";
  if (a.experts > kMaxExperts) return "more than 8192 experts";
  if (2 * a.experts * 4 + 1024 > machine.shared_bytes_optin) return "more experts than shared memory can sort";
  if (a.tokens * a.top_k > kMaxRoutes || a.tokens > kMaxRoutes) return "more than 2^26 routes in one call";
  if (std::max({a.hidden, a.intermediate, a.shared_intermediate}) > kMaxWidth) {
    return "a hidden or intermediate size above 2^20";
  }
  const int64_t tiles = ceil_div(std::max({a.hidden, a.intermediate, a.shared_intermediate}), 64);
  if (max_entries(a, Way::kPlain) * tiles > 0x7fffffff) return "too many tokens for weights of this size in one call";
  if (max_launches < kMaxLaunches) return "room for fewer than 4 launches";
  return nullptr;
}

}  // namespace moe

// From shapes and the data type alone.
inline size_t fused_moe_workspace_bytes(const FusedMoeArgs& a) {
  return moe::lay_out(a.tokens, a.top_k, a.experts, a.hidden, a.intermediate, a.shared_intermediate, a.dtype).total;
}

// Writes the launches of a call, in order, and returns how many; 0 when there is nothing to do (no token) or, with a
// reason in *why_not, when this provider does not take the call.
inline int plan_fused_moe(const native::Machine& machine, const FusedMoeArgs& a, native::Launch launches[],
                          int max_launches, const char** why_not) {
  *why_not = moe::refusal(machine, a, max_launches);
  if (*why_not == nullptr && a.workspace_bytes < fused_moe_workspace_bytes(a)) *why_not = "the workspace is too small";
  if (*why_not != nullptr || a.tokens == 0 || a.hidden == 0) return 0;
  const moe::Way way = moe::choose_way(machine, a);
  const MoeParams p = moe::make_params(a, way);
  moe::plan_sort(machine, launches[0], a, p);
  if (way == moe::Way::kStream) return moe::plan_stream(machine, a, p, launches);
  if (way == moe::Way::kPlain) return moe::plan_plain(a, p, launches);
  return moe::plan_tiles(machine, a, p, way, launches);
}

}  // namespace clover::nvidia
