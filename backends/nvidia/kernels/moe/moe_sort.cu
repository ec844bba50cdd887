// The first step of every mixture of experts: routes sorted by expert and cut into entries, the counters of the later
// steps cleared, the shared expert's gates. And the last one, where it is a step of its own: the weighted sum.
#include "backends/nvidia/kernels/moe/moe_common.cuh"

namespace clover::nvidia::moe {

constexpr int kBatch = 8;  // routes that a thread has on their way at a time
constexpr int kHeld = 32;  // routes whose expert and rank a thread keeps in registers; others go through p.ranks

// The route's expert, or -1 when the route is absent.
__device__ __forceinline__ int route_expert(const MoeParams& p, int route) {
  int64_t at = route;
  if (p.ids_row != p.top_k) {
    const int token = route / p.top_k;
    at = token * p.ids_row + (route - token * p.top_k);
  }
  const int expert = p.ids[at];
  return expert >= 0 && expert < p.experts ? expert : -1;
}

__device__ __forceinline__ uint64_t warp_inclusive_sum(uint64_t value, int lane) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint64_t other = __shfl_up_sync(~0u, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

template <class T>
__device__ float gate_of(const MoeParams& p, int token, int lane) {
  const T* x = static_cast<const T*>(p.x) + token * p.x_row;
  const T* gate = static_cast<const T*>(p.shared_gate);
  float sum = 0.0f;
  for (int i0 = 0; i0 < p.hidden; i0 += 256) {  // blocks of 256, so that FP32 sums stay short
    float part = 0.0f;
    for (int i = i0 + lane; i < min(i0 + 256, p.hidden); i += 32) part += to_float(x[i]) * to_float(gate[i]);
    sum += part;
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return 1.0f / (1.0f + expf(-sum));
}

__device__ void write_gates(const MoeParams& p) {
  const int token = (blockIdx.x - 1) * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (token >= p.tokens) return;
  float gate = 1.0f;
  if (p.shared_gate != nullptr) {
    gate = p.dtype == 0   ? gate_of<float>(p, token, lane)
           : p.dtype == 1 ? gate_of<__nv_bfloat16>(p, token, lane)
                          : gate_of<__half>(p, token, lane);
  }
  if (lane == 0) p.gates[token] = gate;
}

__device__ void write_shared_entries(const MoeParams& p, int thread, int threads) {
  for (int i = thread; i < p.shared_entries; i += threads) {
    const int token = i * p.entry_tokens;
    p.entries[i] = {p.experts, token, min(p.entry_tokens, p.tokens - token), 0};
  }
}

// Up to 32 routes, one to a lane: a position is the number of routes that come before.
__device__ void sort_by_lanes(const MoeParams& p, int routes, int lane) {
  const int expert = lane < routes ? route_expert(p, lane) : -1;
  if (lane < 3) p.head[lane * 32] = 0;
  write_shared_entries(p, lane, 32);
  int position = 0, rank = 0, count = 0;
  for (int other = 0; other < routes; ++other) {
    const int e = __shfl_sync(~0u, expert, other);
    const bool same = e == expert;
    position += e >= 0 && (e < expert || (same && other < lane));
    rank += same && other < lane;
    count += same;
  }
  const bool begins = expert >= 0 && rank % p.entry_tokens == 0;
  const unsigned all = __ballot_sync(~0u, begins);
  int entry = p.shared_entries;
  for (int other = 0; other < routes; ++other) {
    const int before = __shfl_sync(~0u, position, other);
    entry += (all >> other & 1u) && before < position;
  }
  if (expert >= 0) p.order[position] = lane;
  if (begins) p.entries[entry] = {expert, position, min(p.entry_tokens, count - rank), 0};
  if (lane == 0) p.head[kEntries] = p.shared_entries + __popc(all);
}

// Block 0 sorts, the others compute the gates. Where a route stands among its expert's is settled by atomics and may
// change from run to run; each route is computed alone and summed by its number, so no result depends on it.
extern "C" __global__ void __launch_bounds__(1024) clover_moe_sort(const MoeParams p) {
  if (blockIdx.x > 0) return write_gates(p);
  extern __shared__ int32_t shared[];
  int32_t* counts = shared;
  int32_t* starts = shared + p.experts;
  __shared__ uint64_t warp_sums[32];
  const int thread = threadIdx.x, threads = blockDim.x, lane = thread % 32, warp = thread / 32;
  const int routes = p.tokens * p.top_k;
  if (routes <= 32) {
    if (warp == 0) sort_by_lanes(p, routes, lane);
    return;
  }

  for (int e = thread; e < p.experts; e += threads) counts[e] = 0;
  if (thread < 3) p.head[thread * 32] = 0;

  // What a thread holds: expert << 16 | rank, which fits as long as it holds every route, or all ones.
  const bool all_held = routes <= kHeld * threads && routes <= 65536;
  uint32_t held[kHeld];
#pragma unroll
  for (int i0 = 0; i0 < kHeld; i0 += kBatch) {
    if (i0 * threads >= routes || !all_held) break;
    int expert[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int route = thread + (i0 + i) * threads;
      expert[i] = route < routes ? route_expert(p, route) : -1;
    }
    if (i0 == 0) __syncthreads();  // the counts are clear
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      held[i0 + i] = ~0u;
      if (expert[i] >= 0) held[i0 + i] = static_cast<uint32_t>(expert[i]) << 16 | atomicAdd(&counts[expert[i]], 1);
    }
  }
  if (!all_held) {
    __syncthreads();
    for (int r0 = thread; r0 < routes; r0 += kBatch * threads) {
      int expert[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int route = r0 + i * threads;
        expert[i] = route < routes ? route_expert(p, route) : -1;
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (expert[i] >= 0) p.ranks[r0 + i * threads] = atomicAdd(&counts[expert[i]], 1);
      }
    }
  }
  __syncthreads();

  // Exclusive sums over the experts of (entries, routes), one in each half of a 64-bit word.
  const int each = ceil_div(p.experts, threads);
  const int first = min(thread * each, p.experts), last = min(first + each, p.experts);
  uint64_t own = 0;
  for (int e = first; e < last; ++e) {
    own += static_cast<uint64_t>(ceil_div(counts[e], p.entry_tokens)) << 32 | static_cast<uint32_t>(counts[e]);
  }
  const uint64_t inclusive = warp_inclusive_sum(own, lane);
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    const uint64_t sum = warp_inclusive_sum(lane < threads / 32 ? warp_sums[lane] : 0, lane);
    warp_sums[lane] = sum;
  }
  __syncthreads();
  uint64_t before = inclusive - own + (warp > 0 ? warp_sums[warp - 1] : 0);
  for (int e = first; e < last; ++e) {
    const int count = counts[e], start = static_cast<int>(before & 0xffffffffu);
    int entry = p.shared_entries + static_cast<int>(before >> 32);
    starts[e] = start;
    for (int done = 0; done < count; done += p.entry_tokens) {
      p.entries[entry++] = {e, start + done, min(p.entry_tokens, count - done), 0};
    }
    before += static_cast<uint64_t>(ceil_div(count, p.entry_tokens)) << 32 | static_cast<uint32_t>(count);
  }
  write_shared_entries(p, thread, threads);
  if (thread == 0) p.head[kEntries] = p.shared_entries + static_cast<int>(warp_sums[31] >> 32);
  __syncthreads();

  // Scattered words leave a multiprocessor one at a time, so the list is put together in shared memory where it fits.
  int32_t* order = p.stage_order ? shared + 2 * p.experts : p.order;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (i * threads >= routes || !all_held) break;
    if (held[i] != ~0u) order[starts[held[i] >> 16] + (held[i] & 0xffff)] = thread + i * threads;
  }
  if (!all_held) {
#pragma unroll 4
    for (int route = thread; route < routes; route += threads) {
      const int e = route_expert(p, route);
      if (e >= 0) order[starts[e] + p.ranks[route]] = route;
    }
  }
  if (p.stage_order) {
    __syncthreads();
    const int present = static_cast<int>(warp_sums[31] & 0xffffffffu);
#pragma unroll 4
    for (int i = thread; i < present; i += threads) p.order[i] = order[i];
  }
}

template <class T>
__device__ void sum_all(const MoeParams& p) {
  const int blocks = ceil_div(p.hidden, 256);
  const int64_t piece = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  const int token = static_cast<int>(piece / blocks);
  if (token < p.tokens) sum_routes<T>(p, token, static_cast<int>(piece % blocks), threadIdx.x % 32, [] {});
}

extern "C" __global__ void __launch_bounds__(256) clover_moe_sum_bf16(const MoeParams p) {
  sum_all<__nv_bfloat16>(p);
}
extern "C" __global__ void __launch_bounds__(256) clover_moe_sum_f16(const MoeParams p) {
  sum_all<__half>(p);
}

}  // namespace clover::nvidia::moe
