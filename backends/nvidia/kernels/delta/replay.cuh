// The gated delta rule token by token in FP32: the state is read once, lives in registers, and is written once.
//
// A warp holds 4 kRows rows of the state: eight lanes share kRows neighbouring rows, each with every eighth group of
// four columns. One pass over the row finds both S k and S q of the state before the token,
//     S_t q = exp(g) S_{t-1} q + u (k q),
// so that one reduction serves both, and a second pass adds the update. The decay is kept as one factor beside the
// registers (S = factor * registers) and multiplied in when it leaves [2^-20, 2^20] and at the end.
#pragma once

#include "backends/nvidia/kernels/delta/common.cuh"
#include "backends/nvidia/kernels/delta/gated_delta.h"
#include "backends/nvidia/kernels/ptx.cuh"

namespace clover::delta {

inline constexpr int kReplayStage = 8;  // tokens that wait in shared memory

template <int kKeyDim, int kTileRows>
struct ReplayStage {
  alignas(16) float keys[kReplayStage][kKeyDim];
  alignas(16) float queries[kReplayStage][kKeyDim];
  float values[kReplayStage][kTileRows];
  float decay[kReplayStage];
  float beta[kReplayStage];
  float key_query[kReplayStage];
};

template <int kKeyDim, int kRows>
struct ReplayState {
  static constexpr int kGroups = kKeyDim / 32;
  float4 x[kRows][kGroups];  // rows first_row …, columns 32 i + 4 (lane % 8) …

  template <class Fn>
  __device__ __forceinline__ void each(Fn&& fn) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < kGroups; ++i) fn(r, i, x[r][i]);
    }
  }
};

template <int kKeyDim, int kRows>
__device__ __forceinline__ void multiply(ReplayState<kKeyDim, kRows>& state, float by) {
  state.each([&](int, int, float4& x) { x = make_float4(x.x * by, x.y * by, x.z * by, x.w * by); });
}

// What one block does: some rows of one head of one sequence. The grid is (cuts of the rows, value heads, sequences).
struct ReplayTile {
  Sequence sequence;
  int target;  // the final slot; negative for none
  int head;
  int top_row;
};

// The first of this thread's rows.
template <int kRows>
__device__ __forceinline__ int row_of(const ReplayTile& tile) {
  return tile.top_row + static_cast<int>(threadIdx.x) / 8 * kRows;
}

__device__ __forceinline__ float* state_of(const nvidia::GatedDeltaParams& p, int slot, int head) {
  return p.state + slot * p.state_slot + head * p.state_head;
}

// The state before the first token. Rows past the end repeat an existing one.
template <int kKeyDim, int kRows>
__device__ __forceinline__ void load_state(ReplayState<kKeyDim, kRows>& state, const nvidia::GatedDeltaParams& p,
                                           const ReplayTile& tile) {
  if (tile.sequence.slot < 0) {
    state.each([](int, int, float4& x) { x = make_float4(0.0f, 0.0f, 0.0f, 0.0f); });
    return;
  }
  const float* pool = state_of(p, tile.sequence.slot, tile.head) + threadIdx.x % 8 * 4 * p.state_k;
  if (kRows == 4 && p.layout == nvidia::StateLayout::kValueLast) {
    const float* rows = pool + min(row_of<kRows>(tile), p.value_dim - 4);
#pragma unroll
    for (int i = 0; i < kKeyDim / 32; ++i) {
      const float* column = rows + i * 32 * p.state_k;
      const float4 a = *reinterpret_cast<const float4*>(column);
      const float4 b = *reinterpret_cast<const float4*>(column + p.state_k);
      const float4 c = *reinterpret_cast<const float4*>(column + 2 * p.state_k);
      const float4 d = *reinterpret_cast<const float4*>(column + 3 * p.state_k);
      state.x[0][i] = make_float4(a.x, b.x, c.x, d.x);
      state.x[1 % kRows][i] = make_float4(a.y, b.y, c.y, d.y);
      state.x[2 % kRows][i] = make_float4(a.z, b.z, c.z, d.z);
      state.x[3 % kRows][i] = make_float4(a.w, b.w, c.w, d.w);
    }
    return;
  }
  state.each([&](int r, int i, float4& x) {
    const float* from = pool + min(row_of<kRows>(tile) + r, p.value_dim - 1) * p.state_v + i * 32 * p.state_k;
    if (p.layout == nvidia::StateLayout::kKeyLast) {
      x = *reinterpret_cast<const float4*>(from);
    } else {
      x = make_float4(from[0], from[p.state_k], from[2 * p.state_k], from[3 * p.state_k]);
    }
  });
}

template <int kKeyDim, int kRows>
__device__ __forceinline__ void store_state(ReplayState<kKeyDim, kRows>& state, const nvidia::GatedDeltaParams& p,
                                            const ReplayTile& tile) {
  float* pool = state_of(p, tile.target, tile.head) + threadIdx.x % 8 * 4 * p.state_k;
  if (kRows == 4 && p.layout == nvidia::StateLayout::kValueLast) {
    if (row_of<kRows>(tile) >= p.value_dim) return;
#pragma unroll
    for (int i = 0; i < kKeyDim / 32; ++i) {
      float* column = pool + row_of<kRows>(tile) + i * 32 * p.state_k;
      const float4 a = state.x[0][i], b = state.x[1 % kRows][i], c = state.x[2 % kRows][i], d = state.x[3 % kRows][i];
      *reinterpret_cast<float4*>(column) = make_float4(a.x, b.x, c.x, d.x);
      *reinterpret_cast<float4*>(column + p.state_k) = make_float4(a.y, b.y, c.y, d.y);
      *reinterpret_cast<float4*>(column + 2 * p.state_k) = make_float4(a.z, b.z, c.z, d.z);
      *reinterpret_cast<float4*>(column + 3 * p.state_k) = make_float4(a.w, b.w, c.w, d.w);
    }
    return;
  }
  state.each([&](int r, int i, float4& x) {
    if (row_of<kRows>(tile) + r >= p.value_dim) return;
    float* to = pool + (row_of<kRows>(tile) + r) * p.state_v + i * 32 * p.state_k;
    if (p.layout == nvidia::StateLayout::kKeyLast) {
      *reinterpret_cast<float4*>(to) = x;
    } else {
      to[0] = x.x;
      to[p.state_k] = x.y;
      to[2 * p.state_k] = x.z;
      to[3 * p.state_k] = x.w;
    }
  });
}

// Token `token` of the call to place `at`, by one warp: normalised key and query, their product, value, decay and beta.
template <class T, int kKeyDim, int kTileRows>
__device__ __forceinline__ void stage_token(ReplayStage<kKeyDim, kTileRows>& stage, const nvidia::GatedDeltaParams& p,
                                            const ReplayTile& tile, int64_t token, int at) {
  constexpr int kValues = kKeyDim / 32;
  const int lane = threadIdx.x % 32;
  const int head = tile.head;
  const int key_head = static_cast<uint32_t>(head) / static_cast<uint32_t>(p.value_heads / p.heads);
  const T* v = static_cast<const T*>(p.v) + token * p.v_token + head * p.v_head;
  const T* k = static_cast<const T*>(p.k) + token * p.k_token + key_head * p.k_head;
  const T* q = static_cast<const T*>(p.q) + token * p.q_token + key_head * p.q_head;
  const float gate = p.g[token * p.g_token + head * p.g_head];
  const float beta = p.beta[token * p.beta_token + head * p.beta_head];
  float keys[kValues], queries[kValues], kk = 0.0f, qq = 0.0f, kq = 0.0f;
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    keys[i] = to_float(k[lane + 32 * i]);
    queries[i] = to_float(q[lane + 32 * i]);
  }
  constexpr int kLaneRows = (kTileRows + 31) / 32;
  float values[kLaneRows];
#pragma unroll
  for (int i = 0; i < kLaneRows; ++i) values[i] = to_float(v[min(tile.top_row + lane + 32 * i, p.value_dim - 1)]);
  float key_norm = 1.0f, query_norm = 1.0f;
  if (p.l2norm) {
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      kk = fmaf(keys[i], keys[i], kk);
      qq = fmaf(queries[i], queries[i], qq);
    }
    key_norm = rsqrtf(sum_over_lanes<32>(kk) + 1e-6f);
    query_norm = rsqrtf(sum_over_lanes<32>(qq) + 1e-6f);
  }
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    keys[i] *= key_norm;
    queries[i] *= query_norm;
    kq = fmaf(keys[i], queries[i], kq);
    stage.keys[at][lane + 32 * i] = keys[i];
    stage.queries[at][lane + 32 * i] = queries[i];
  }
#pragma unroll
  for (int i = 0; i < kLaneRows; ++i) {
    if (lane + 32 * i < kTileRows) stage.values[at][lane + 32 * i] = values[i];
  }
  kq = sum_over_lanes<32>(kq);
  if (lane == 0) {
    stage.decay[at] = expf(gate);
    stage.beta[at] = beta;
    stage.key_query[at] = kq;
  }
}

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

// Sums 2 kRows values over eight lanes: lanes 0 … 3 of eight get value own_row(lane), lanes 4 … 7 that plus kRows.
template <int kRows>
__device__ __forceinline__ int own_row(int lane8) {
  return lane8 % 4 / (4 / kRows);
}

template <int kRows>
__device__ __forceinline__ float reduce_scatter(const float (&value)[2 * kRows], int lane8) {
  const bool b2 = lane8 & 4, b1 = lane8 & 2, b0 = lane8 & 1;
  float part[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    part[i] = (b2 ? value[i + kRows] : value[i]) + __shfl_xor_sync(0xffffffffu, b2 ? value[i] : value[i + kRows], 4);
  }
  if constexpr (kRows == 1) {
    part[0] += __shfl_xor_sync(0xffffffffu, part[0], 2);
    return part[0] + __shfl_xor_sync(0xffffffffu, part[0], 1);
  } else {
    static_assert(kRows == 4);
    float two[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      two[i] = (b1 ? part[i + 2] : part[i]) + __shfl_xor_sync(0xffffffffu, b1 ? part[i] : part[i + 2], 2);
    }
    return (b0 ? two[1] : two[0]) + __shfl_xor_sync(0xffffffffu, b0 ? two[0] : two[1], 1);
  }
}

// One token; the result, in lanes 4 … 7 of eight, is the output of row own_row(lane8). `first_row` is that of the rows
// that are held, among those staged.
template <int kKeyDim, int kRows, int kTileRows>
__device__ __forceinline__ float step(ReplayState<kKeyDim, kRows>& state, float& factor,
                                      const ReplayStage<kKeyDim, kTileRows>& stage, int at, float scale,
                                      int first_row = 0) {
  using State = ReplayState<kKeyDim, kRows>;
  const int lane = threadIdx.x % 32, lane8 = lane % 8;
  const float4* keys = reinterpret_cast<const float4*>(stage.keys[at]) + lane8;
  const float4* queries = reinterpret_cast<const float4*>(stage.queries[at]) + lane8;
  float4 k[State::kGroups];
  float along[2 * kRows] = {};
#pragma unroll
  for (int i = 0; i < State::kGroups; ++i) {
    k[i] = keys[i * 8];
    const float4 q = queries[i * 8];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      along[r] = dot(state.x[r][i], k[i], along[r]);
      along[r + kRows] = dot(state.x[r][i], q, along[r + kRows]);
    }
  }
  const float v = stage.values[at][first_row + threadIdx.x / 8 * kRows + own_row<kRows>(lane8)];
  factor *= stage.decay[at];
  const float sum = factor * reduce_scatter<kRows>(along, lane8);
  const float u = stage.beta[at] * (v - sum);
  if (!(factor >= 0x1p-20f && factor <= 0x1p20f)) {
    multiply(state, factor);
    factor = 1.0f;
  }
  const float own = __shfl_sync(0xffffffffu, u, lane / 8 * 8 + lane8 % 4);
  const float scaled = __fdividef(u, factor);
  float update[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) update[r] = __shfl_sync(0xffffffffu, scaled, lane / 8 * 8 + r * (4 / kRows));
#pragma unroll
  for (int i = 0; i < State::kGroups; ++i) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float4& x = state.x[r][i];
      x.x = fmaf(update[r], k[i].x, x.x);
      x.y = fmaf(update[r], k[i].y, x.y);
      x.z = fmaf(update[r], k[i].z, x.z);
      x.w = fmaf(update[r], k[i].w, x.w);
    }
  }
  return scale * fmaf(own, stage.key_query[at], sum);
}

template <class T, int kKeyDim, int kRows, int kWarps>
__device__ __forceinline__ void replay(const nvidia::GatedDeltaParams& p) {
  constexpr int kTileRows = 4 * kRows * kWarps;
  __shared__ ReplayStage<kKeyDim, kTileRows> stage;
  const int warp = threadIdx.x / 32, lane8 = threadIdx.x % 8;
  const int n = blockIdx.z;
  const ReplayTile tile = {find_sequence(p.cu_seqlens, p.initial, n, p.tokens, p.slots), p.final[n],
                           static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x) * kTileRows};
  const int length = tile.sequence.length;
  if (!tile.sequence.sound || tile.target >= p.slots) return;
  if (length == 0 && (tile.target < 0 || tile.target == tile.sequence.slot)) return;

  ReplayState<kKeyDim, kRows> state;
  load_state(state, p, tile);
  const int64_t first = tile.sequence.first;
  const int row = row_of<kRows>(tile) + own_row<kRows>(lane8);
  const bool writes = lane8 >= 4 && lane8 % (4 / kRows) == 0 && row < p.value_dim;
  T* out = static_cast<T*>(p.o) + first * p.o_token + tile.head * p.o_head + row;
  float factor = 1.0f;
#pragma unroll 1
  for (int begin = 0; begin < length; begin += kReplayStage) {
    const int count = min(kReplayStage, length - begin);
    if (begin > 0) __syncthreads();  // the stage is free again
#pragma unroll 1
    for (int at = warp; at < count; at += kWarps) stage_token<T>(stage, p, tile, first + begin + at, at);
    __syncthreads();
#pragma unroll 1
    for (int at = 0; at < count; ++at, out += p.o_token) {
      const float o = step(state, factor, stage, at, p.scale);
      if (writes) *out = from_float<T>(o);
    }
  }
  if (tile.target < 0) return;
  if (factor != 1.0f) multiply(state, factor);
  store_state(state, p, tile);
}

// ---- the same with the next state on its way: blocks that stay, each with a list of heads ----

// A head of a sequence is replayed in cuts of kAheadRows rows. While one cut is replayed from registers, the next one's
// part of the state, or that of the next head's first cut, is copied to shared memory: every thread copies what it will
// hold itself, so that it waits for nobody else.
template <int kKeyDim>
struct AheadState {
  static constexpr int kUnits = 4 * kKeyDim / 32;  // of 16 bytes, a thread

  __device__ static float4* own() {
    extern __shared__ __align__(16) float4 clover_replay_ahead[];
    return clover_replay_ahead + threadIdx.x;
  }
  __device__ static float4& unit(int r, int i) {
    return own()[(r * (kKeyDim / 32) + i) * (32 * nvidia::gated_delta_detail::kReplayWarps)];
  }

  __device__ static void request(const nvidia::GatedDeltaParams& p, const ReplayTile& tile) {
    if (tile.sequence.slot >= 0) {
      const float* pool = state_of(p, tile.sequence.slot, tile.head) + threadIdx.x % 8 * 4;
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float* row = pool + min(row_of<4>(tile) + r, p.value_dim - 1) * p.state_v;
#pragma unroll
        for (int i = 0; i < kKeyDim / 32; ++i) ptx::copy_async_16(&unit(r, i), row + i * 32, true);
      }
    }
    ptx::copy_async_commit();
  }

  __device__ static void fetch(ReplayState<kKeyDim, 4>& state, bool present) {
    ptx::copy_async_wait<0>();
    state.each([&](int r, int i, float4& x) { x = present ? unit(r, i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f); });
  }
};

// The block's next head from `item` on that has anything to do, in its first cut; head -1 when there is none.
__device__ __forceinline__ ReplayTile next_head(const nvidia::GatedDeltaParams& p, int& item) {
  const int items = p.sequences * p.value_heads;
  for (; item < items; item += gridDim.x) {
    const int n = item / p.value_heads;
    const ReplayTile tile = {find_sequence(p.cu_seqlens, p.initial, n, p.tokens, p.slots), p.final[n],
                             item - n * p.value_heads, 0};
    if (!tile.sequence.sound || tile.target >= p.slots) continue;
    if (tile.sequence.length > 0 || (tile.target >= 0 && tile.target != tile.sequence.slot)) return tile;
  }
  return {{0, 0, -1, false}, -1, -1, 0};
}

template <class T, int kKeyDim>
__device__ __forceinline__ void replay_ahead(const nvidia::GatedDeltaParams& p) {
  constexpr int kWarps = nvidia::gated_delta_detail::kReplayWarps, kCut = 16 * kWarps;
  constexpr int kRows = nvidia::gated_delta_detail::kAheadRows;
  __shared__ ReplayStage<kKeyDim, kRows> stage;
  const int warp = threadIdx.x / 32, lane8 = threadIdx.x % 8;
  int item = blockIdx.x;
  ReplayTile next = next_head(p, item);
  if (next.head >= 0) AheadState<kKeyDim>::request(p, next);
#pragma unroll 1
  while (next.head >= 0) {
    ReplayTile tile = next;
    const int64_t first = tile.sequence.first;
    const int length = tile.sequence.length;
    int staged = -1;  // the first token in shared memory
#pragma unroll 1
    for (; tile.top_row < p.value_dim; tile.top_row += kCut) {
      ReplayState<kKeyDim, 4> state;
      const int row = row_of<4>(tile) + own_row<4>(lane8);
      const bool writes = lane8 >= 4 && row < p.value_dim;
      T* out = static_cast<T*>(p.o) + first * p.o_token + tile.head * p.o_head + row;
      float factor = 1.0f;
      int begin = 0;
      do {
        const int count = min(kReplayStage, length - begin);
        if (staged != begin) {
          __syncthreads();  // the stage is free again
          ReplayTile whole = tile;
          whole.top_row = 0;
#pragma unroll 2
          for (int at = warp; at < count; at += kWarps) stage_token<T>(stage, p, whole, first + begin + at, at);
          staged = begin;
        }
        if (begin == 0) AheadState<kKeyDim>::fetch(state, tile.sequence.slot >= 0);
        __syncthreads();
        if (begin == 0) {
          if (tile.top_row + kCut < p.value_dim) {
            next.top_row = tile.top_row + kCut;
          } else {
            item += gridDim.x;
            next = next_head(p, item);
          }
          if (next.head >= 0) AheadState<kKeyDim>::request(p, next);
        }
#pragma unroll 1
        for (int at = 0; at < count; ++at, out += p.o_token) {
          const float o = step(state, factor, stage, at, p.scale, tile.top_row);
          if (writes) *out = from_float<T>(o);
        }
        begin += kReplayStage;
      } while (begin < length);
      if (tile.target < 0) continue;
      if (factor != 1.0f) multiply(state, factor);
      store_state(state, p, tile);
    }
  }
}

}  // namespace clover::delta
