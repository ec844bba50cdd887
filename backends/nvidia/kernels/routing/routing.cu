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

// What a warp writes down while it chooses.
struct Notes {
  alignas(16) uint32_t keys[32];
  uint32_t ids[32];
};

// A token's logits: lane l holds experts l, l + 32, ...; places past the last expert order behind everything.
template <int kWidth>
struct Row {
  float logit[kWidth];
  uint32_t bits[kWidth];
  float powers[kWidth];  // exp(logit - largest)
  float largest, total;  // softmax: powers / total
  bool dead;             // nothing above -inf

  template <class T>
  __device__ __forceinline__ void request(const T* logits, int experts, int lane) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const int expert = i * 32 + lane;
      logit[i] = expert < experts ? to_float(logits[expert]) : 0.0f;
    }
  }

  // Once what was asked for is there.
  __device__ __forceinline__ void prepare(int experts, int lane) {
    uint32_t best = 0;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      bits[i] = i * 32 + lane < experts ? order_bits(logit[i]) : 0;
      best = max(best, bits[i]);
    }
    best = __reduce_max_sync(kAll, best);
    dead = best == kNothing;
    largest = order_value(best);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      powers[i] = dead || bits[i] == 0 ? 0.0f : expf(order_value(bits[i]) - largest);
      sum += powers[i];
    }
    total = warp_sum(sum);
  }

  __device__ __forceinline__ float weight_of(uint32_t id_bits) const {
    return expf(order_value(id_bits) - largest) / total;
  }

  // The k best outside `barred` (one bit per value held): lane j learns the j-th of them. The k-th largest of the
  // lanes' own best is a bound below which no such value lies; as a rule fewer than 32 reach it, and a rank is their
  // number above.
  __device__ __forceinline__ void choose(int k, int lane, uint32_t barred, Notes& notes, int& id,
                                         uint32_t& id_bits) const {
    id = -1, id_bits = kNothing;
    uint32_t left[kWidth], best[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) best[i] = left[i] = barred >> i & 1u ? 0 : bits[i];
#pragma unroll
    for (int span = kWidth / 2; span > 0; span /= 2) {
#pragma unroll
      for (int i = 0; i < span; ++i) best[i] = max(best[i], best[i + span]);
    }
    __syncwarp();  // the notes may still be read
    notes.keys[lane] = best[0];
    __syncwarp();
    const int above = count_above(notes, best[0], 32, -1);
    const uint32_t bound = max(1u, __reduce_min_sync(kAll, above < k ? best[0] : ~0u));
    int count = 0, places[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const uint32_t reach = __ballot_sync(kAll, left[i] >= bound);
      places[i] = count + __popc(reach & ((1u << lane) - 1));
      count += __popc(reach);
    }
    if (count > 32) return choose_in_rounds(k, lane, left, id, id_bits);
    __syncwarp();  // every lane has counted
    notes.keys[lane] = 0;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (left[i] >= bound) notes.keys[places[i]] = left[i], notes.ids[places[i]] = i * 32 + lane;
    }
    __syncwarp();
    const uint32_t key = notes.keys[lane], expert = notes.ids[lane];
    const int rank = lane < count ? count_above(notes, key, count, lane) : 32;
    __syncwarp();
    if (rank < k) notes.keys[rank] = key, notes.ids[rank] = expert;
    __syncwarp();
    if (lane < min(k, count)) id = static_cast<int>(notes.ids[lane]), id_bits = notes.keys[lane];
  }

  // How many of the first `count` keys are larger than this one, or as large and noted before `place`. Places are in
  // the order of experts.
  __device__ __forceinline__ static int count_above(const Notes& notes, uint32_t key, int count, int place) {
    int above = 0;
#pragma unroll 4
    for (int i = 0; i < count; i += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(notes.keys + i);
      above += four.x > key || (four.x == key && i < place);
      above += four.y > key || (four.y == key && i + 1 < place);
      above += four.z > key || (four.z == key && i + 2 < place);
      above += four.w > key || (four.w == key && i + 3 < place);
    }
    return above;
  }

  // One after another, however many are equal.
  __device__ __forceinline__ void choose_in_rounds(int k, int lane, uint32_t (&left)[kWidth], int& id,
                                                   uint32_t& id_bits) const {
#pragma unroll 1
    for (int j = 0; j < k; ++j) {
      uint32_t best = 0;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) best = max(best, left[i]);
      const uint32_t top = __reduce_max_sync(kAll, best);
      if (top == 0) break;
      uint32_t place = 0xffffu;
#pragma unroll
      for (int i = kWidth - 1; i >= 0; --i) place = left[i] == top ? i * 32 + lane : place;
      const uint32_t winner = __reduce_min_sync(kAll, place);
      const uint32_t mine = lane == winner % 32 ? winner / 32 : kWidth;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) left[i] = i == mine ? 0 : left[i];
      if (lane == j) id = winner, id_bits = top;
    }
  }

  __device__ __forceinline__ void store(const RoutingParams& p, int token, int lane, int id, uint32_t id_bits) const {
    const bool there = !dead && id >= 0;
    float weight = there ? weight_of(id_bits) : 0.0f;
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
  __shared__ Notes notes[4];
  if (token >= p.tokens) return;
  Row<kWidth> row;
  row.request(static_cast<const T*>(p.logits) + token * p.logits_row, p.experts, lane);
  row.prepare(p.experts, lane);
  uint32_t id_bits;
  int id;
  row.choose(p.top_k, lane, 0, notes[threadIdx.x / 32], id, id_bits);
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
  __device__ __forceinline__ static void arrive() {
    if constexpr (kBlocks > 1) asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  }
  __device__ __forceinline__ static void wait() {
    if constexpr (kBlocks == 1) {
      __syncthreads();
    } else {
      asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    }
  }
  __device__ __forceinline__ static void sync() {
    arrive();
    wait();
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

// The ranks of experts [first, last) among all, by number where no token counts; 2^parts_log2 threads to an expert.
// Written here, or with !kOwnOnly to the whole team.
template <int kBlocks, int kThreads, bool kOwnOnly>
__device__ __forceinline__ void rank_experts(const RoutingParams& p, const uint32_t* keys, float* ranked, int* ranks,
                                             int first, int last, int parts_log2, bool any) {
  using Together = Team<kBlocks>;
  const int thread = threadIdx.x, padded = (p.experts + 3) / 4 * 4;
  const int parts = 1 << parts_log2, part = thread & (parts - 1);
#pragma unroll 1
  for (int base = first; base < last; base += kThreads >> parts_log2) {
    const int expert = base + (thread >> parts_log2);
    const bool owner = expert < last;
    const uint32_t key = owner ? keys[expert] : 1;
    int better = 0;
#pragma unroll 8
    for (int e = part * 4; e < padded; e += parts * 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(keys + e);
      const uint32_t below = e + 3 < expert ? key - 1 : key;  // equal ones before this expert are better
      better += (four.x > below) + (four.y > below) + (four.z > below) + (four.w > below);
      if (e == expert / 4 * 4) {
        better += four.x == key && e < expert;
        better += four.y == key && e + 1 < expert;
        better += four.z == key && e + 2 < expert;
      }
    }
    for (int step = parts / 2; step > 0; step /= 2) better += __shfl_xor_sync(kAll, better, step);
    if (!any) better = expert;
    if (!owner || part != 0) continue;
#pragma unroll
    for (int r = 0; r < (kOwnOnly ? 1 : kBlocks); ++r) {
      int* all_ranks = kOwnOnly ? ranks : Together::peer(ranks, r);
      float* all_ranked = kOwnOnly ? ranked : Together::peer(ranked, r);
      all_ranks[expert] = better;
      if (p.top_p > 0.0f) all_ranked[better] = order_value(key);
    }
  }
}

// Tokens are dealt to the team's blocks one by one, `rows` at a time. What a token gives an expert is written to the
// tables of all blocks, each of which then knows every score and, with few experts, ranks them all by itself.
template <class T, int kWidth, int kBlocks, int kThreads>
__device__ __forceinline__ void block_coreset(const RoutingParams& p) {
  using Together = Team<kBlocks>;
  constexpr bool kRanksAll = kBlocks == 1;
  constexpr int kOwn = kWidth * 32 > kThreads ? kWidth * 32 / kThreads : 1;  // experts whose scores a thread adds up
  extern __shared__ __align__(16) float shared[];
  const int padded = (p.experts + 3) / 4 * 4, own_rows = p.rows / kBlocks;
  float* table = shared;                                                  // [rows][padded]: what tokens give experts
  uint32_t* keys = reinterpret_cast<uint32_t*>(table + p.rows * padded);  // scores as order_bits
  float* ranked = reinterpret_cast<float*>(keys + padded);                // scores by rank
  int* ranks = reinterpret_cast<int*>(ranked + padded);
  __shared__ int prefix;
  __shared__ Notes notes[kThreads / 32];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, rank = Together::rank();
  const int block = blockIdx.x / kBlocks, row_of_warp = warp * kBlocks + rank;

  const int begin = p.cu_seqlens[block], end = p.cu_seqlens[block + 1];
  // With one block its first token is 0 as a rule; the row is on its way before that is known.
  Row<kWidth> row;
  int held = -1;  // the token in `row`
  const bool guesses = gridDim.x == kBlocks && warp < own_rows && row_of_warp < p.tokens;
  if (guesses) row.request(static_cast<const T*>(p.logits) + row_of_warp * p.logits_row, p.experts, lane);
  const auto clear_table = [&] {
    for (int i = thread; i < min(p.rows, p.tokens) * padded / 4; i += kThreads)
      reinterpret_cast<float4*>(table)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  };
  clear_table();
  int parts_log2 = 0;  // threads that share an expert when it is ranked
  const int ranked_here = kRanksAll ? p.experts : (p.experts + kBlocks - 1) / kBlocks;
  while (parts_log2 < 5 && (ranked_here << (parts_log2 + 1)) <= kThreads) ++parts_log2;
  if (begin < 0 || end > p.tokens || begin > end) return;
  const int share = (p.experts + kBlocks - 1) / kBlocks;  // experts of this block of threads
  const int first_expert = rank * share, last_expert = min(first_expert + share, p.experts);
  uint8_t* coreset = p.coreset + block * p.coreset_row;
  if (begin == end) {
    for (int e = first_expert + thread; e < last_expert; e += kThreads) coreset[e] = 0;
    return;
  }
  Together::arrive();
  if (guesses) {
    held = row_of_warp;
    row.prepare(p.experts, lane);
  }
  bool any = p.live == nullptr;
  if (!any) {
    for (int token = begin + thread; token < end && !any; token += kThreads) any = p.live[token] != 0;
    any = __syncthreads_or(any);
  }

  // Twice through the tokens: the first time for the scores, the second to choose among the experts kept. One loop, as
  // the code of a choice then is in the instruction cache when it is needed again.
  float scores[kOwn] = {};
  uint32_t barred = 0;
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {
#pragma unroll 1
    for (int first = begin; first < end; first += p.rows) {
      const int token = first + row_of_warp;
      const bool there = warp < own_rows && token < end;
      bool counts = false;
      int id = -1;
      uint32_t id_bits = kNothing;
      if (there) {
        if (held != token) {
          row.request(static_cast<const T*>(p.logits) + token * p.logits_row, p.experts, lane);
          row.prepare(p.experts, lane);
        }
        held = token;
        counts = !row.dead && (p.live == nullptr || p.live[token] != 0);
        if (pass == 1 || (counts && !p.largest)) row.choose(p.top_k, lane, barred, notes[warp], id, id_bits);
        if (pass == 1) row.store(p, token, lane, id, id_bits);
      }
      if (pass == 1) continue;
      Together::wait();  // every table is clear
      if (counts && p.largest) {
        const float factor = 1.0f / row.total;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const int e = i * 32 + lane;
          for (int r = 0; r < kBlocks && e < p.experts; ++r)
            Together::peer(table, r)[row_of_warp * padded + e] = row.powers[i] * factor;
        }
      } else if (id >= 0) {
        const float weight = row.weight_of(id_bits);
#pragma unroll
        for (int r = 0; r < kBlocks; ++r) Together::peer(table, r)[row_of_warp * padded + id] = weight;
      }
      Together::sync();
      const int rows = min(p.rows, end - first);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const float* column = table + thread + i * kThreads;
        if (thread + i * kThreads >= p.experts) break;
        if (p.largest) {
          for (int r = 0; r < rows; ++r) {
            const float value = column[r * padded];
            if (value > scores[i] || isnan(value)) scores[i] = value;  // a NaN, once in, stays: nothing is greater
          }
        } else {
#pragma unroll 16
          for (int r = 0; r < rows; ++r) scores[i] += column[r * padded];  // in the order of the tokens
        }
      }
      if (first + p.rows < end) {
        __syncthreads();
        clear_table();
        Together::arrive();
      }
    }
    if (pass == 1) break;

#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int e = thread + i * kThreads;
      if (e < padded) keys[e] = e < p.experts ? order_bits(scores[i]) : 0;
    }
    __syncthreads();
    rank_experts<kBlocks, kThreads, kRanksAll>(p, keys, ranked, ranks, kRanksAll ? 0 : first_expert,
                                               kRanksAll ? p.experts : last_expert, parts_log2, any);
    if (kRanksAll) {
      __syncthreads();
    } else {
      Together::sync();
    }
    int keep = p.budget;
    if (p.top_p > 0.0f && any) {
      if (warp == 0) {
        const int count = shortest_prefix(p, keys, ranked, lane);
        if (lane == 0) prefix = count;
      }
      __syncthreads();
      keep = prefix;
    }
    for (int e = first_expert + thread; e < last_expert; e += kThreads) coreset[e] = ranks[e] < keep;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const int e = i * 32 + lane;
      if (e >= p.experts || ranks[e] >= keep) barred |= 1u << i;
    }
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
