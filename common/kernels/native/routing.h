// topk_softmax and block_coreset. Host code; the kernels are in routing.cu.
//
// block_coreset is three launches: every token's own votes or softmax, one block of threads per sequence that chooses
// its experts, and the tokens again, among these.
#pragma once

#include "plan.h"

namespace clover::native {

constexpr int kRouteLanes = 32;               // lanes that share a token
constexpr int kRouteRegisters = 8;            // logits that a lane keeps, where that is all of them
constexpr int64_t kMaxCoresetExperts = 4096;  // two arrays of them in shared memory

// What a token's softmax divides by: e^(logit - greatest) / sum.
struct SoftmaxParts {
  float greatest, sum;
};

// Strides in elements.
struct RouteParams {
  const void* logits;
  int32_t* ids;  // null: only `softmax` is wanted
  float* weights;
  SoftmaxParts* softmax;  // [tokens], or null
  int64_t logits_row, ids_row, weights_row;
  int64_t tokens, experts;
  int32_t top_k, renormalize;
  // Only tokens of sequences, and only among their experts; null for all.
  const int32_t* cu_seqlens;
  const uint8_t* coreset;
  int64_t coreset_row, sequences;
};

struct CoresetParams {
  const void* logits;
  const int32_t* votes;         // [tokens, top_k]
  const float* vote_weights;    // [tokens, top_k]
  const SoftmaxParts* softmax;  // [tokens]; null: score by votes
  const int32_t* cu_seqlens;
  const uint8_t* live;  // null: every token
  uint8_t* coreset;
  int64_t logits_row, coreset_row;
  int64_t tokens, experts;
  int32_t top_k, budget;
  double top_p;  // 0: none
};

struct TopkSoftmaxArgs {
  DType dtype = DType::kFloat32;  // of the logits
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
  int64_t sequences = 0;
  const int32_t* cu_seqlens = nullptr;
  const uint8_t* live = nullptr;
  uint8_t* coreset = nullptr;
  int64_t coreset_row = 0;
  int64_t budget = 0;
  bool largest = false;  // score by the largest weight, not by votes
  double top_p = 0.0;    // 0: none
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

namespace routing {

inline RouteParams route_params(const TopkSoftmaxArgs& a) {
  RouteParams p{};
  p.logits = a.logits, p.logits_row = a.logits_row;
  p.ids = a.ids, p.ids_row = a.ids_row;
  p.weights = a.weights, p.weights_row = a.weights_row;
  p.tokens = a.tokens, p.experts = a.experts;
  p.top_k = static_cast<int32_t>(a.top_k), p.renormalize = a.renormalize;
  return p;
}

inline Launch route_launch(const Machine& machine, const RouteParams& p, DType dtype) {
  const bool in_registers = p.experts <= kRouteLanes * kRouteRegisters;
  const DTypeNames names =
      in_registers ? CLOVER_DTYPE_NAMES("clover_portable_route_256") : CLOVER_DTYPE_NAMES("clover_portable_route");
  return make_launch(names.of(dtype), loop_blocks(machine, p.tokens * kRouteLanes), p);
}

struct Parts {
  int32_t* votes;
  float* vote_weights;
  SoftmaxParts* softmax;
  size_t bytes;

  Parts(const BlockCoresetArgs& a, void* memory) {
    WorkspaceParts parts(memory);
    const int64_t votes_count = a.largest ? 0 : a.routing.tokens * a.routing.top_k;
    votes = parts.take<int32_t>(votes_count);
    vote_weights = parts.take<float>(votes_count);
    softmax = parts.take<SoftmaxParts>(a.largest ? a.routing.tokens : 0);
    bytes = parts.bytes();
  }
};

}  // namespace routing

inline int plan_topk_softmax(const Machine& machine, const TopkSoftmaxArgs& a, Launch out[], int max,
                             const char** why_not) {
  *why_not = nullptr;
  if (max < 1) return refuse(why_not, "room for no launch");
  if (a.experts > 0x7fffffff) return refuse(why_not, "more experts than an int32 id can name");
  if (a.tokens == 0 || a.top_k == 0) return 0;
  out[0] = routing::route_launch(machine, routing::route_params(a), a.dtype);
  return 1;
}

inline size_t block_coreset_workspace_bytes(const BlockCoresetArgs& args) {
  return routing::Parts(args, nullptr).bytes;
}

inline int plan_block_coreset(const Machine& machine, const BlockCoresetArgs& a, Launch out[], int max,
                              const char** why_not) {
  *why_not = nullptr;
  if (max < 3) return refuse(why_not, "room for fewer than three launches");
  const TopkSoftmaxArgs& r = a.routing;
  if (r.experts > kMaxCoresetExperts) return refuse(why_not, "more than 4096 experts");
  if (a.sequences > kMaxGrid) return refuse(why_not, "too many sequences for one launch");
  const routing::Parts parts(a, a.workspace);
  if (a.workspace_bytes < parts.bytes) return refuse(why_not, "the workspace is too small");
  if (a.sequences == 0) return 0;

  int count = 0;
  if (r.tokens > 0) {
    RouteParams scores = routing::route_params(r);
    scores.renormalize = 0;
    scores.ids = a.largest ? nullptr : parts.votes, scores.ids_row = r.top_k;
    scores.weights = a.largest ? nullptr : parts.vote_weights, scores.weights_row = r.top_k;
    scores.softmax = a.largest ? parts.softmax : nullptr;
    out[count++] = routing::route_launch(machine, scores, r.dtype);
  }

  CoresetParams p{};
  p.logits = r.logits, p.logits_row = r.logits_row;
  p.votes = parts.votes, p.vote_weights = parts.vote_weights, p.softmax = a.largest ? parts.softmax : nullptr;
  p.cu_seqlens = a.cu_seqlens, p.live = a.live;
  p.coreset = a.coreset, p.coreset_row = a.coreset_row;
  p.tokens = r.tokens, p.experts = r.experts;
  p.top_k = static_cast<int32_t>(r.top_k), p.budget = static_cast<int32_t>(a.budget);
  p.top_p = a.top_p;
  out[count++] = make_launch(CLOVER_DTYPE_NAMES("clover_portable_coreset").of(r.dtype), a.sequences, p, 8 * r.experts);

  if (r.tokens > 0) {
    RouteParams kept = routing::route_params(r);
    kept.cu_seqlens = a.cu_seqlens, kept.sequences = a.sequences;
    kept.coreset = a.coreset, kept.coreset_row = a.coreset_row;
    out[count++] = routing::route_launch(machine, kept, r.dtype);
  }
  return count;
}

#endif

}  // namespace clover::native
