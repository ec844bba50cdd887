// Top-k routing, and the coreset of a block, each in one launch. A warp holds a token's row of logits in registers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backends/nvidia/kernels/routing/routing.h"

namespace clover::nvidia::routing {

constexpr unsigned kAll = 0xffffffffu;
constexpr uint32_t kNothing = 0x007fffffu;  // what order_bits makes of -inf

__device__ __forceinline__ float to_float(float value) {
  return value;
}
__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ __forceinline__ float to_float(__half value) {
  return __half2float(value);
}

// An unsigned number that orders as the float does: NaN as -inf, and -0 as +0. Never 0.
__device__ __forceinline__ uint32_t order_bits(float value) {
  if (isnan(value)) return kNothing;
  const uint32_t bits = __float_as_uint(value + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float order_value(uint32_t bits) {
  return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAll, value, step);
  return value;
}

// A token's logits: lane l holds experts l, l + 32, ...; places past the last expert order behind everything.
template <int kWidth>
struct Row {
  uint32_t bits[kWidth];
  float largest, total;  // softmax: exp(logit - largest) / total
  bool dead;             // nothing above -inf

  template <class T>
  __device__ __forceinline__ void load(const T* logits, int experts, int lane) {
    uint32_t best = 0;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const int expert = i * 32 + lane;
      bits[i] = expert < experts ? order_bits(to_float(logits[expert])) : 0;
      best = max(best, bits[i]);
    }
    best = __reduce_max_sync(kAll, best);
    dead = best == kNothing;
    largest = order_value(best);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += exponential(i);
    total = warp_sum(sum);
  }
  __device__ __forceinline__ float exponential(int i) const {
    return dead || bits[i] == 0 ? 0.0f : expf(order_value(bits[i]) - largest);
  }

  // Marks the k best outside `barred` (one bit per value held) in `chosen`; lane j learns the j-th of them.
  __device__ __forceinline__ void choose(int k, int lane, uint32_t barred, uint32_t& chosen, int& id,
                                         uint32_t& id_bits) const {
    uint32_t left[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) left[i] = barred >> i & 1u ? 0 : bits[i];
    chosen = 0;
    id = -1, id_bits = kNothing;
    for (int j = 0; j < k; ++j) {
      // Trees rather than chains: with a warp or two per scheduler, latency is what a round costs.
      uint32_t best[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) best[i] = left[i];
#pragma unroll
      for (int span = kWidth / 2; span > 0; span /= 2) {
#pragma unroll
        for (int i = 0; i < span; ++i) best[i] = max(best[i], best[i + span]);
      }
      const uint32_t top = __reduce_max_sync(kAll, best[0]);
      if (top == 0) break;
      uint32_t place[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) place[i] = left[i] == top ? i * 32 + lane : 0xffffu;
#pragma unroll
      for (int span = kWidth / 2; span > 0; span /= 2) {
#pragma unroll
        for (int i = 0; i < span; ++i) place[i] = min(place[i], place[i + span]);
      }
      const uint32_t winner = __reduce_min_sync(kAll, place[0]);
      const uint32_t mine = lane == winner % 32 ? winner / 32 : kWidth;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) left[i] = i == mine ? 0 : left[i];
      chosen |= mine < kWidth ? 1u << mine : 0;
      if (lane == j) id = winner, id_bits = top;
    }
  }

  __device__ __forceinline__ void store(const RoutingParams& p, int token, int lane, int id, uint32_t id_bits) const {
    const bool there = !dead && id >= 0;
    float weight = there ? expf(order_value(id_bits) - largest) / total : 0.0f;
    if (p.renormalize) {
      const float sum = warp_sum(weight);
      weight = sum != 0.0f ? weight / sum : 0.0f;
    }
    if (lane < p.top_k) {
      p.ids[token * p.ids_row + lane] = there ? id : -1;
      p.weights[token * p.weights_row + lane] = weight;
    }
  }
};

template <class T, int kWidth>
__device__ __forceinline__ void topk_softmax(const RoutingParams& p) {
  const int token = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (token >= p.tokens) return;
  Row<kWidth> row;
  row.load(static_cast<const T*>(p.logits) + token * p.logits_row, p.experts, lane);
  uint32_t chosen, id_bits;
  int id;
  row.choose(p.top_k, lane, 0, chosen, id, id_bits);
  row.store(p, token, lane, id, id_bits);
}

// The blocks of threads that work on one block of tokens: a cluster, which reads and writes each other's shared memory
// (sm_90 on), or a single block.
template <int kBlocks>
struct Team {
  __device__ __forceinline__ static int rank() {
    uint32_t rank = 0;
    if constexpr (kBlocks > 1) asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
  }
  __device__ __forceinline__ static void sync() {
    if constexpr (kBlocks == 1) {
      __syncthreads();
    } else {
      asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    }
  }
  // The same variable in another block's shared memory.
  template <class Value>
  __device__ __forceinline__ static Value* peer(Value* shared, int rank) {
    if constexpr (kBlocks == 1) return shared;
    uint64_t there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
    return reinterpret_cast<Value*>(there);
  }
};

// How many of the ranked experts reach the share top_p of the total, between k and the budget; by one warp.
__device__ int shortest_prefix(const RoutingParams& p, const uint32_t* keys, const float* ranked, int lane) {
  float total = 0.0f;
  for (int e = lane; e < p.experts; e += 32) total += order_value(keys[e]);
  total = warp_sum(total);
  float before = 0.0f;
  for (int i0 = 0; i0 < p.budget; i0 += 32) {
    const int i = i0 + lane;
    float sum = i < p.budget ? ranked[i] : 0.0f;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const float other = __shfl_up_sync(kAll, sum, step);
      if (lane >= step) sum += other;
    }
    sum += before;
    before = __shfl_sync(kAll, sum, 31);
    const unsigned reached = __ballot_sync(kAll, i < p.budget && sum / total >= p.top_p);
    if (reached != 0) return max(p.top_k, i0 + __ffs(reached));
  }
  return p.budget;
}

// Tokens are dealt to the team's blocks one by one, `rows` at a time; experts to its threads, several threads to each.
template <class T, int kWidth, int kBlocks, int kThreads>
__device__ __forceinline__ void block_coreset(const RoutingParams& p) {
  using Together = Team<kBlocks>;
  extern __shared__ __align__(16) float shared[];
  const int padded = (p.experts + 3) / 4 * 4, own_rows = p.rows / kBlocks;
  float* gathered = shared;  // [own_rows][padded]: what this block's tokens give each expert
  uint32_t* keys = reinterpret_cast<uint32_t*>(gathered + own_rows * padded);  // scores as order_bits
  float* ranked = reinterpret_cast<float*>(keys + padded);                     // scores by rank
  int* ranks = reinterpret_cast<int*>(ranked + padded);
  __shared__ int prefix;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, rank = Together::rank();
  const int block = blockIdx.x / kBlocks;

  const int begin = p.cu_seqlens[block], end = p.cu_seqlens[block + 1];
  if (begin < 0 || end > p.tokens || begin > end) return;
  const int share = (p.experts + kBlocks - 1) / kBlocks;  // experts of this block of threads
  const int first_expert = rank * share, last_expert = min(first_expert + share, p.experts);
  uint8_t* coreset = p.coreset + block * p.coreset_row;
  if (begin == end) {
    for (int e = first_expert + thread; e < last_expert; e += kThreads) coreset[e] = 0;
    return;
  }
  int parts = 1;  // threads that share an expert
  while (parts < 32 && parts * 2 * share <= kThreads) parts *= 2;
  const int expert = first_expert + thread / parts, part = thread % parts;
  const bool owner = expert < last_expert;

  bool any = p.live == nullptr;
  if (!any) {
    for (int token = begin + thread; token < end && !any; token += kThreads) any = p.live[token] != 0;
    any = __syncthreads_or(any);
  }

  Row<kWidth> row;
  float score = 0.0f;
  for (int first = begin; first < end; first += p.rows) {
    const int token = first + warp * kBlocks + rank;
    if (first != begin) Together::sync();
    if (warp < own_rows) {
      bool counts = false;
      if (token < end) {
        row.load(static_cast<const T*>(p.logits) + token * p.logits_row, p.experts, lane);
        counts = !row.dead && (p.live == nullptr || p.live[token] != 0);
      }
      uint32_t chosen = counts ? kAll : 0, id_bits;
      int id;
      if (counts && !p.largest) row.choose(p.top_k, lane, 0, chosen, id, id_bits);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const int e = i * 32 + lane;
        if (e < p.experts) gathered[warp * padded + e] = chosen >> i & 1u ? row.exponential(i) / row.total : 0.0f;
      }
    }
    Together::sync();
    // Each of an expert's threads fetches other rows, all at once; the sum then runs over the tokens in their order.
    for (int row0 = 0; row0 < own_rows; row0 += parts) {
      float values[kBlocks];
#pragma unroll
      for (int r = 0; r < kBlocks; ++r) {
        const bool there = owner && row0 + part < own_rows;
        values[r] = there ? Together::peer(gathered, r)[(row0 + part) * padded + expert] : 0.0f;
      }
      for (int i = 0; i < min(parts, own_rows - row0); ++i) {
#pragma unroll
        for (int r = 0; r < kBlocks; ++r) {
          const float value = __shfl_sync(kAll, values[r], lane / parts * parts + i);
          if (!p.largest)
            score += value;
          else if (value > score || isnan(value))
            score = value;  // a NaN, once in, stays: nothing is greater
        }
      }
    }
  }

  // Every block of the team gets every score, ranks its own experts, and tells the others.
  const uint32_t own = order_bits(score);
  if (owner && part == 0) {
#pragma unroll
    for (int r = 0; r < kBlocks; ++r) Together::peer(keys, r)[expert] = own;
  }
  if (thread < padded - p.experts) keys[p.experts + thread] = 0;
  Together::sync();
  const uint32_t key = owner ? keys[expert] : 0;
  int better = 0;
#pragma unroll 4
  for (int e = part * 4; owner && e < padded; e += parts * 4) {
    const uint4 four = *reinterpret_cast<const uint4*>(keys + e);
    better += four.x > key || (four.x == key && e < expert);
    better += four.y > key || (four.y == key && e + 1 < expert);
    better += four.z > key || (four.z == key && e + 2 < expert);
    better += four.w > key || (four.w == key && e + 3 < expert);
  }
  for (int step = parts / 2; step > 0; step /= 2) better += __shfl_xor_sync(kAll, better, step);
  if (!any) better = expert;
  if (owner && part == 0) {
#pragma unroll
    for (int r = 0; r < kBlocks; ++r) {
      Together::peer(ranks, r)[expert] = better;
      if (p.top_p > 0.0f) Together::peer(ranked, r)[better] = score;
    }
  }
  Together::sync();  // the last time that the team touches each other's memory
  int keep = p.budget;
  if (p.top_p > 0.0f && any) {
    if (warp == 0) {
      const int count = shortest_prefix(p, keys, ranked, lane);
      if (lane == 0) prefix = count;
    }
    __syncthreads();
    keep = prefix;
  }
  if (owner && part == 0) coreset[expert] = better < keep;

  uint32_t barred = 0;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const int e = i * 32 + lane;
    if (e >= p.experts || ranks[e] >= keep) barred |= 1u << i;
  }
  const bool held = end - begin <= p.rows;  // the row is still in the registers
  for (int token = begin + warp * kBlocks + rank; warp < own_rows && token < end; token += p.rows) {
    if (!held) row.load(static_cast<const T*>(p.logits) + token * p.logits_row, p.experts, lane);
    uint32_t chosen, id_bits;
    int id;
    row.choose(p.top_k, lane, barred, chosen, id, id_bits);
    row.store(p, token, lane, id, id_bits);
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CLOVER_TEAM(suffix, T, width)                                                            \
  extern "C" __global__ void __launch_bounds__(kTeamThreads) __cluster_dims__(kTeamBlocks, 1, 1) \
      clover_block_coreset_team_##suffix##_##width(const RoutingParams p) {                      \
    block_coreset<T, width, kTeamBlocks, kTeamThreads>(p);                                       \
  }
#else
#define CLOVER_TEAM(suffix, T, width)                                                                                 \
  extern "C" __global__ void __launch_bounds__(1024) clover_block_coreset_##suffix##_##width(const RoutingParams p) { \
    block_coreset<T, width, 1, 1024>(p);                                                                              \
  }
#endif
#define CLOVER_ROUTING(suffix, T, width)                                                                            \
  extern "C" __global__ void __launch_bounds__(128) clover_topk_softmax_##suffix##_##width(const RoutingParams p) { \
    topk_softmax<T, width>(p);                                                                                      \
  }                                                                                                                 \
  CLOVER_TEAM(suffix, T, width)
#define CLOVER_ROUTING_WIDTHS(suffix, T) \
  CLOVER_ROUTING(suffix, T, 8)           \
  CLOVER_ROUTING(suffix, T, 16)          \
  CLOVER_ROUTING(suffix, T, 32)
CLOVER_ROUTING_WIDTHS(f32, float)
CLOVER_ROUTING_WIDTHS(bf16, __nv_bfloat16)
CLOVER_ROUTING_WIDTHS(f16, __half)
#undef CLOVER_ROUTING_WIDTHS
#undef CLOVER_ROUTING
#undef CLOVER_TEAM

}  // namespace clover::nvidia::routing
