// topk_softmax and block_coreset.
#include "portable.cuh"
#include "routing.h"

namespace clover::native {
namespace {

using Token = Team<kRouteLanes>;

// An expert in the order of the ranking: by logit (or score) descending, then by index.
struct Ranked {
  float value;
  int32_t expert;
};

__device__ __forceinline__ bool precedes(const Ranked& a, const Ranked& b) {
  return a.value > b.value || (a.value == b.value && a.expert < b.expert);
}

// The first in the order among the lanes' candidates; an expert of -1 is none.
__device__ __forceinline__ Ranked first_of_team(Ranked best) {
#pragma unroll
  for (int distance = kRouteLanes / 2; distance > 0; distance /= 2) {
    const Ranked other{Token::exchange(best.value, distance), Token::exchange(best.expert, distance)};
    if (other.expert >= 0 && (best.expert < 0 || precedes(other, best))) best = other;
  }
  return best;
}

// A token's logits, NaN as -inf. kKept a lane in registers, or read anew each time when that is 0.
template <class T, int kKept>
struct Logits {
  const T* row;
  int64_t experts;
  float kept[kKept > 0 ? kKept : 1];

  __device__ __forceinline__ Logits(const T* row, int64_t experts) : row(row), experts(experts) {
    if constexpr (kKept > 0) {
#pragma unroll
      for (int i = 0; i < kKept; ++i) {
        const int e = Token::lane() + i * kRouteLanes;
        kept[i] = e < experts ? without_nan(to_float(row[e])) : -infinity();
      }
    }
  }

  // Calls body(logit, expert) for this lane's experts.
  template <class Body>
  __device__ __forceinline__ void for_each(const Body& body) const {
    if constexpr (kKept > 0) {
#pragma unroll
      for (int i = 0; i < kKept; ++i) {
        const int e = Token::lane() + i * kRouteLanes;
        if (e < experts) body(kept[i], e);
      }
    } else {
      for (int64_t e = Token::lane(); e < experts; e += kRouteLanes) {
        body(without_nan(to_float(row[e])), static_cast<int32_t>(e));
      }
    }
  }

  __device__ __forceinline__ SoftmaxParts softmax() const {
    float greatest = -infinity();
    for_each([&](float logit, int32_t) { greatest = logit > greatest ? logit : greatest; });
    greatest = Token::max(greatest);
    float sum = 0.0f;
    if (greatest > -infinity()) for_each([&](float logit, int32_t) { sum += expf(logit - greatest); });
    return {greatest, Token::sum(sum)};
  }
};

// Whether any expert of the row counts at all.
__device__ __forceinline__ bool has_experts(const SoftmaxParts& softmax) {
  return softmax.greatest > -infinity();
}

__device__ __forceinline__ float weight_of(const SoftmaxParts& softmax, float logit) {
  return expf(logit - softmax.greatest) / softmax.sum;
}

// The token's best experts, best first, among those that `kept` marks (all when it is null).
template <class T, int kKept>
__device__ __forceinline__ void choose(const Logits<T, kKept>& logits, const SoftmaxParts& softmax, const uint8_t* kept,
                                       int top_k, bool renormalize, int32_t* ids, float* weights) {
  if (!has_experts(softmax)) {
    for (int j = Token::lane(); j < top_k; j += kRouteLanes) ids[j] = -1, weights[j] = 0.0f;
    return;
  }
  Ranked last{infinity(), -1};
  float sum = 0.0f;
  for (int j = 0; j < top_k; ++j) {
    Ranked best{0.0f, -1};
    logits.for_each([&](float logit, int32_t expert) {
      const Ranked candidate{logit, expert};
      if (kept != nullptr && kept[expert] == 0) return;
      if (!precedes(last, candidate)) return;
      if (best.expert < 0 || precedes(candidate, best)) best = candidate;
    });
    best = first_of_team(best);
    const float weight = best.expert < 0 ? 0.0f : weight_of(softmax, best.value);
    sum += weight;
    if (Token::lane() == 0) ids[j] = best.expert, weights[j] = weight;
    if (best.expert >= 0) last = best;
  }
  if (!renormalize || Token::lane() != 0) return;
  for (int j = 0; j < top_k; ++j) weights[j] = sum == 0.0f ? 0.0f : weights[j] / sum;
}

template <class T, int kKept>
__device__ __forceinline__ void route(const RouteParams& p) {
  for (int64_t t = grid_thread() / kRouteLanes; t < p.tokens; t += grid_threads() / kRouteLanes) {
    const uint8_t* kept = nullptr;
    if (p.coreset != nullptr) {
      const int64_t n = sequence_of(p.cu_seqlens, p.sequences, t);
      if (n < 0 || !sequence_at(p.cu_seqlens, n, p.tokens).present) continue;
      kept = p.coreset + n * p.coreset_row;
    }
    const Logits<T, kKept> logits(static_cast<const T*>(p.logits) + t * p.logits_row, p.experts);
    const SoftmaxParts softmax = logits.softmax();
    if (p.softmax != nullptr && Token::lane() == 0) p.softmax[t] = softmax;
    if (p.ids == nullptr) continue;
    choose(logits, softmax, kept, p.top_k, p.renormalize != 0, p.ids + t * p.ids_row, p.weights + t * p.weights_row);
  }
}

// ---- the coreset of a sequence, by one block ----

// The sum, in ascending token order, of what live tokens give the expert.
__device__ __forceinline__ float votes_for(const CoresetParams& p, const Sequence& sequence, int expert) {
  float score = 0.0f;
  for (int64_t t = sequence.begin; t < sequence.begin + sequence.length; ++t) {
    if (p.live != nullptr && p.live[t] == 0) continue;
    for (int64_t i = t * p.top_k; i < (t + 1) * p.top_k; ++i) {
      if (p.votes[i] == expert) score += p.vote_weights[i];
    }
  }
  return score;
}

// The largest weight among live tokens; one that is NaN makes the score NaN for good.
template <class T>
__device__ __forceinline__ float largest_weight(const CoresetParams& p, const Sequence& sequence, int expert) {
  float score = 0.0f;
  for (int64_t t = sequence.begin; t < sequence.begin + sequence.length; ++t) {
    if (p.live != nullptr && p.live[t] == 0) continue;
    const SoftmaxParts softmax = p.softmax[t];
    if (!has_experts(softmax)) continue;
    const float logit = without_nan(to_float(static_cast<const T*>(p.logits)[t * p.logits_row + expert]));
    const float weight = weight_of(softmax, logit);
    score = score >= weight || score != score ? score : weight;
  }
  return score;
}

// How many of the best reach the share top_p of all scores: at least top_k, and the whole budget when none does.
__device__ __forceinline__ int shortest_prefix(const CoresetParams& p, const float* scores, const int32_t* order) {
  double total = 0.0, prefix = 0.0;
  for (int e = 0; e < p.experts; ++e) total += scores[e];
  for (int i = 0; i < p.budget; ++i) {
    prefix += scores[order[i]];
    if (prefix / total >= p.top_p) return i + 1 > p.top_k ? i + 1 : p.top_k;
  }
  return p.budget;
}

template <class T>
__device__ __forceinline__ void coreset(const CoresetParams& p) {
  CLOVER_DYNAMIC_SHARED(shared);
  CLOVER_SHARED(int, kept_count, 1);
  float* scores = reinterpret_cast<float*>(shared);
  int32_t* order = reinterpret_cast<int32_t*>(scores + p.experts);
  const int experts = static_cast<int>(p.experts);
  const Sequence sequence = sequence_at(p.cu_seqlens, blockIdx.x, p.tokens);
  if (!sequence.present) return;

  int live = 0;
  for (int64_t i = threadIdx.x; i < sequence.length; i += kBlockThreads) {
    live |= p.live == nullptr || p.live[sequence.begin + i] != 0;
  }
  const bool any = block_sum(live) > 0;
  for (int e = threadIdx.x; e < experts; e += kBlockThreads) {
    scores[e] = p.softmax == nullptr ? votes_for(p, sequence, e) : largest_weight<T>(p, sequence, e);
  }
  __syncthreads();
  // A score that an infinite logit made NaN ranks behind all others. Scores of 0 leave the experts in their order,
  // which is what a block without live tokens keeps.
  for (int e = threadIdx.x; e < experts; e += kBlockThreads) {
    const Ranked own{without_nan(scores[e]), e};
    int rank = 0;
    for (int other = 0; other < experts; ++other) rank += precedes(Ranked{without_nan(scores[other]), other}, own);
    order[rank] = e;
  }
  __syncthreads();
  if (threadIdx.x == 0) *kept_count = any && p.top_p != 0.0 ? shortest_prefix(p, scores, order) : p.budget;
  __syncthreads();
  uint8_t* kept = p.coreset + blockIdx.x * p.coreset_row;
  const int count = sequence.length == 0 ? 0 : *kept_count;
  for (int i = threadIdx.x; i < experts; i += kBlockThreads) kept[order[i]] = i < count;
}

}  // namespace
}  // namespace clover::native

#define CLOVER_ROUTING(tag, T)                                                  \
  CLOVER_KERNEL(clover_portable_route_##tag, clover::native::RouteParams) {     \
    clover::native::route<T, 0>(params);                                        \
  }                                                                             \
  CLOVER_KERNEL(clover_portable_route_256_##tag, clover::native::RouteParams) { \
    clover::native::route<T, clover::native::kRouteRegisters>(params);          \
  }                                                                             \
  CLOVER_KERNEL(clover_portable_coreset_##tag, clover::native::CoresetParams) { \
    clover::native::coreset<T>(params);                                         \
  }
CLOVER_FOR_EACH_TYPE(CLOVER_ROUTING)
