// Routing on NVIDIA: what its kernels are given, and the plan of a call. Host code; no CUDA header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/kernels/native/launch.h"

namespace clover::nvidia {

// Both routing operators; block_coreset alone uses what comes after `renormalize`. Strides in elements.
struct RoutingParams {
  const void* logits;
  int32_t* ids;
  float* weights;
  int64_t logits_row, ids_row, weights_row;
  int32_t tokens, experts, top_k, renormalize;
  const int32_t* cu_seqlens;
  const uint8_t* live;  // null: every token
  uint8_t* coreset;
  int64_t coreset_row;
  int32_t budget, largest;  // largest: score by the largest weight, not by votes
  int32_t rows;             // tokens whose scores are gathered at a time
  float top_p;              // 0: none
};

struct TopkSoftmaxArgs {
  native::DType dtype = native::DType::kFloat32;  // of the logits
  int64_t tokens = 0, experts = 0, top_k = 0;
  const void* logits = nullptr;
  int64_t logits_row = 0;
  int32_t* ids = nullptr;
  int64_t ids_row = 0;
  float* weights = nullptr;
  int64_t weights_row = 0;
  bool renormalize = false;
};

struct BlockCoresetArgs {
  TopkSoftmaxArgs routing;
  int64_t blocks = 0;
  const int32_t* cu_seqlens = nullptr;
  const uint8_t* live = nullptr;
  uint8_t* coreset = nullptr;
  int64_t coreset_row = 0;
  int64_t budget = 0;
  bool largest = false;
  float top_p = 0.0f;  // 0: none
};

namespace routing {

constexpr int64_t kMaxExperts = 1024;
constexpr int64_t kMaxTopK = 32;
constexpr int kTeamBlocks = 8;  // from sm_90 on, a cluster shares the tokens of one block_coreset block
constexpr int kTeamThreads = 256;

// Kernels hold a row of logits in registers: 8, 16 or 32 a lane.
inline int width_index(int64_t experts) {
  return experts <= 256 ? 0 : experts <= 512 ? 1 : 2;
}

inline const char* refusal(const native::Machine& machine, const TopkSoftmaxArgs& a) {
  if (machine.warp_size != 32) return "NVIDIA routing needs 32 lanes a warp";
  if (a.experts > kMaxExperts) return "more than 1024 experts";
  if (a.top_k > kMaxTopK) return "k above 32";
  if (a.tokens > (int64_t{1} << 30)) return "more than 2^30 tokens";
  return nullptr;
}

inline RoutingParams base_params(const TopkSoftmaxArgs& a) {
  RoutingParams p{};
  p.logits = a.logits, p.logits_row = a.logits_row;
  p.ids = a.ids, p.ids_row = a.ids_row;
  p.weights = a.weights, p.weights_row = a.weights_row;
  p.tokens = static_cast<int32_t>(a.tokens), p.experts = static_cast<int32_t>(a.experts);
  p.top_k = static_cast<int32_t>(a.top_k), p.renormalize = a.renormalize;
  return p;
}

}  // namespace routing

// Both planners: the number of launches; 0 when there is nothing to do or, with a reason in *why_not, on refusal.
inline int plan_topk_softmax(const native::Machine& machine, const TopkSoftmaxArgs& a, native::Launch launches[],
                             int max_launches, const char** why_not) {
  *why_not = max_launches < 1 ? "room for no launch" : routing::refusal(machine, a);
  if (*why_not != nullptr || a.tokens == 0) return 0;
  static const char* const names[3][3] = {
      {"clover_topk_softmax_f32_8", "clover_topk_softmax_f32_16", "clover_topk_softmax_f32_32"},
      {"clover_topk_softmax_bf16_8", "clover_topk_softmax_bf16_16", "clover_topk_softmax_bf16_32"},
      {"clover_topk_softmax_f16_8", "clover_topk_softmax_f16_16", "clover_topk_softmax_f16_32"}};
  native::Launch launch{};
  launch.kernel = names[static_cast<int>(a.dtype)][routing::width_index(a.experts)];
  launch.grid[0] = static_cast<uint32_t>((a.tokens + 3) / 4);  // a warp per token
  launch.block[0] = 128;
  launch.set_params(routing::base_params(a));
  launches[0] = launch;
  return 1;
}

inline int plan_block_coreset(const native::Machine& machine, const BlockCoresetArgs& a, native::Launch launches[],
                              int max_launches, const char** why_not) {
  *why_not = max_launches < 1 ? "room for no launch" : routing::refusal(machine, a.routing);
  if (*why_not == nullptr && a.blocks > 0x7fffffff / routing::kTeamBlocks) *why_not = "more than 2^28 blocks";
  if (*why_not != nullptr || a.blocks == 0) return 0;
  static const char* const names[2][3][3] = {
      {{"clover_block_coreset_f32_8", "clover_block_coreset_f32_16", "clover_block_coreset_f32_32"},
       {"clover_block_coreset_bf16_8", "clover_block_coreset_bf16_16", "clover_block_coreset_bf16_32"},
       {"clover_block_coreset_f16_8", "clover_block_coreset_f16_16", "clover_block_coreset_f16_32"}},
      {{"clover_block_coreset_team_f32_8", "clover_block_coreset_team_f32_16", "clover_block_coreset_team_f32_32"},
       {"clover_block_coreset_team_bf16_8", "clover_block_coreset_team_bf16_16", "clover_block_coreset_team_bf16_32"},
       {"clover_block_coreset_team_f16_8", "clover_block_coreset_team_f16_16", "clover_block_coreset_team_f16_32"}}};
  RoutingParams p = routing::base_params(a.routing);
  p.cu_seqlens = a.cu_seqlens, p.live = a.live;
  p.coreset = a.coreset, p.coreset_row = a.coreset_row;
  p.budget = static_cast<int32_t>(a.budget), p.largest = a.largest, p.top_p = a.top_p;
  const bool team = machine.compute_capability >= 90;
  const int blocks = team ? routing::kTeamBlocks : 1, threads = team ? routing::kTeamThreads : 1024;
  // One row of scores for each warp of the team, as far as shared memory goes, beside three arrays over the experts and
  // the warps' notes.
  const int64_t row_bytes = (a.routing.experts + 3) / 4 * 16;
  const int64_t room = (machine.shared_bytes_optin - 1024 - threads * 8) / row_bytes - 3;
  const int64_t rows = std::min<int64_t>(threads / 32 * blocks, room) / blocks * blocks;
  p.rows = static_cast<int32_t>(rows);
  native::Launch launch{};
  launch.kernel = names[team][static_cast<int>(a.routing.dtype)][routing::width_index(a.routing.experts)];
  launch.grid[0] = static_cast<uint32_t>(a.blocks * blocks);
  launch.block[0] = static_cast<uint32_t>(threads);
  launch.shared_bytes = static_cast<uint32_t>((rows + 3) * row_bytes);
  launch.set_params(p);
  launches[0] = launch;
  return 1;
}

}  // namespace clover::nvidia
