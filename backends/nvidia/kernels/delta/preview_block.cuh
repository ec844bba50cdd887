// The preview of one block of at most `kWidth` tokens as a handful of matrix products around one read of the state.
//
// With E(i, j) = exp of the sum of g over (j, i], K the normalised keys, Q the normalised queries and S the slot's
// state, the forward recurrence's updates u_t and the reverse one's u'_t solve two unit triangular systems of size W:
//     u_t  + beta_t sum_{s<t} E(t, s)     (k_t k_s) u_s  = beta_t (v_t - E(t, start) S k_t)
//     u'_t + beta_t sum_{s>t} E(s-1, t-1) (k_t k_s) u'_s = beta_t v_t
// and the reads are linear in them. So the read matrices are carried through the transposed systems (one row of Y for
// each token, W numbers, the same for every row of the state), forward in the lower triangle and reverse in the upper:
//     o_t = sum_s Y[t,s] v_s + scale E(t, start) S q_t - sum_{s<=t} Y[t,s] E(s, start) S k_s
// Only S k and S q touch the state. Products run on the tensor cores in BF16 terms: a 16-bit value of q, k or v is held
// exactly by one term (BF16) or two (FP16), an FP32 value by two, so no product is ever rounded to a single BF16.
#pragma once

#include "backends/nvidia/kernels/delta/common.cuh"
#include "backends/nvidia/kernels/delta/preview_delta.h"
#include "backends/nvidia/kernels/ptx.cuh"

namespace clover::delta {

using Bf16 = __nv_bfloat16;

// How the system's matrices are read: `full` has no reverse part and every token reads the last state.
enum class Shape { kLowerAndUpper, kLower, kFull };

__device__ __forceinline__ Shape shape_of(nvidia::DeltaRead read) {
  switch (read) {
    case nvidia::DeltaRead::kBlock:
      return Shape::kFull;
    case nvidia::DeltaRead::kCausal:
      return Shape::kLower;
    default:
      return Shape::kLowerAndUpper;
  }
}

template <int kKeyDim_, int kWidth_, int kRows_, int kSplits_>
struct BlockTile {
  static constexpr int kKeyDim = kKeyDim_;
  static constexpr int kWidth = kWidth_;
  static constexpr int kRows = kRows_;
  static constexpr int kSplits = kSplits_;
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / 32;
  // Warps that own 16 rows of the state each. They are the last ones and the solvers the first, so that with few rows
  // the triangular systems are solved while the state is multiplied.
  static constexpr int kFirstProductWarp = kWarps - kRows / 16;
  static constexpr int kSolverThreads = 2 * kWidth;

  static constexpr int kKeyStride = kKeyDim + 16;  // 64-bit fragment reads of four rows fall into different banks
  static constexpr int kValueStride = kRows + 8;   // so do ldmatrix' eight rows
  static constexpr int kSquareStride = kWidth + 8;
  static constexpr int kDecayStride = kWidth + 4;
  static constexpr int kKeyTerm = 2 * kWidth * kKeyStride;  // elements from one BF16 term to the next
  static constexpr int kValueTerm = kWidth * kValueStride;

  static constexpr int64_t kStateBytes = int64_t{4} * kRows * kKeyDim;
  static constexpr int64_t kKeyBytes = int64_t{2} * kSplits * kKeyTerm;
  static constexpr int64_t kValueBytes = int64_t{2} * kSplits * kValueTerm;
  static constexpr int64_t kSquareBytes = int64_t{4} * kWidth * kSquareStride;
  static constexpr int64_t kDecayBytes = int64_t{4} * (kWidth + 1) * kDecayStride;
  static constexpr int64_t kSharedBytes =
      kStateBytes + kKeyBytes + kValueBytes + 3 * kSquareBytes + kDecayBytes + int64_t{4} * 4 * kWidth;
  static_assert(kSharedBytes == nvidia::preview_delta_detail::block_shared_bytes(kKeyDim, kWidth, kRows, kSplits));

  // Functions rather than members, so that the compiler always sees shared memory and never makes generic accesses.
  __device__ static unsigned char* shared() {
    extern __shared__ __align__(16) unsigned char clover_block_shared[];
    return clover_block_shared;
  }
  // [kRows][kKeyDim], 16-byte units of odd rows exchanged (see state_unit)
  __device__ static float* state() { return reinterpret_cast<float*>(shared()); }
  // [kSplits][k rows, then q rows][kKeyStride]
  __device__ static Bf16* keys() { return reinterpret_cast<Bf16*>(shared() + kStateBytes); }
  // [kSplits][kWidth][kValueStride]
  __device__ static Bf16* values() { return reinterpret_cast<Bf16*>(shared() + kStateBytes + kKeyBytes); }
  // [kWidth][kSquareStride]: the forward system below the diagonal, the reverse one above
  __device__ static float* system() {
    return reinterpret_cast<float*>(shared() + kStateBytes + kKeyBytes + kValueBytes);
  }
  // The same shape: right sides, then Y, of the forward recurrence (s <= t) and of the reverse one (s > t), else zero.
  __device__ static float* forward() { return system() + kWidth * kSquareStride; }
  __device__ static float* reverse() { return system() + 2 * kWidth * kSquareStride; }
  // [kWidth + 1][kDecayStride]: decay[i][j] = E(i, j), tokens counted from 1, 0 is the start
  __device__ static float* decay() { return system() + 3 * kWidth * kSquareStride; }
  __device__ static float* g() { return decay() + (kWidth + 1) * kDecayStride; }
  __device__ static float* beta() { return g() + kWidth; }
  __device__ static float* norm() { return g() + 2 * kWidth; }  // of k, then of q

  // Fragment reads take four neighbouring units of two neighbouring rows at once: keep those in different banks.
  __device__ static int state_unit(int row, int unit) { return row * (kKeyDim / 4) + (unit ^ ((row & 1) << 2)); }
};

// Eight 16-bit values to shared memory; FP16 ones as two BF16 terms.
template <class T, class Tile>
__device__ __forceinline__ void request_values(Bf16* to, int term, const T* from, bool present) {
  if constexpr (Tile::kSplits == 1) {
    ptx::copy_async_16(to, from, present);
  } else {
    uint4 high = {0, 0, 0, 0}, low = {0, 0, 0, 0};
    if (present) {
      const uint4 raw = *reinterpret_cast<const uint4*>(from);
      const uint32_t in[4] = {raw.x, raw.y, raw.z, raw.w};
      uint32_t h[4], l[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&in[i]));
        h[i] = ptx::pack_bf16(pair.x, pair.y);
        l[i] = ptx::pack_bf16(pair.x - ptx::bf16_low(h[i]), pair.y - ptx::bf16_high(h[i]));
      }
      high = {h[0], h[1], h[2], h[3]};
      low = {l[0], l[1], l[2], l[3]};
    }
    *reinterpret_cast<uint4*>(to) = high;
    *reinterpret_cast<uint4*>(to + term) = low;
  }
}

// What a block works on: some rows of one value head of one sequence.
struct BlockWork {
  Sequence sequence;  // length 0: nothing to do
  int head, key_head, first_row;
};

// The grid is (cuts of the rows, value heads, sequences).
template <class Tile>
__device__ __forceinline__ BlockWork find_work(const nvidia::PreviewDeltaParams& p) {
  const int head = blockIdx.y;
  return {find_sequence(p.cu_seqlens, p.initial, blockIdx.z, p.tokens, p.slots), head, head / (p.value_heads / p.heads),
          static_cast<int>(blockIdx.x) * Tile::kRows};
}

template <class T, class Tile>
__device__ __forceinline__ void request_keys(const nvidia::PreviewDeltaParams& p, const BlockWork& work) {
  constexpr int kUnits = Tile::kKeyDim / 8;
  constexpr int kRowsAtOnce = Tile::kThreads / kUnits;
  constexpr int kRounds = 2 * Tile::kWidth / kRowsAtOnce;
  static_assert(Tile::kWidth % kRowsAtOnce == 0 || kRounds == 1);
  const int unit = threadIdx.x % kUnits * 8, at = threadIdx.x / kUnits;
  const T* k = static_cast<const T*>(p.k) + work.sequence.first * p.k_token + work.key_head * p.k_head + unit;
  const T* q = static_cast<const T*>(p.q) + work.sequence.first * p.q_token + work.key_head * p.q_head + unit;
  Bf16* to = Tile::keys() + at * Tile::kKeyStride + unit;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int row = round * kRowsAtOnce + at;
    const bool is_query = row >= Tile::kWidth;
    const int t = is_query ? row - Tile::kWidth : row;
    const int existing = min(t, work.sequence.length - 1);
    const T* from = is_query ? q + existing * p.q_token : k + existing * p.k_token;
    request_values<T, Tile>(to + round * kRowsAtOnce * Tile::kKeyStride, Tile::kKeyTerm, from,
                            t < work.sequence.length);
  }
  ptx::copy_async_commit();
}

// Each product warp asks for its own rows of the state and its own columns of v, so it waits for nobody else's.
template <class T, class Tile>
__device__ __forceinline__ void request_values_of_rows(const nvidia::PreviewDeltaParams& p, const BlockWork& work,
                                                       int row) {
  if (row >= 0) {
    const int column = row + threadIdx.x % 2 * 8;
    const T* v =
        static_cast<const T*>(p.v) + work.sequence.first * p.v_token + work.head * p.v_head + work.first_row + column;
#pragma unroll
    for (int i = 0; i < Tile::kWidth / 16; ++i) {
      const int t = i * 16 + threadIdx.x % 32 / 2;
      request_values<T, Tile>(Tile::values() + t * Tile::kValueStride + column, Tile::kValueTerm,
                              v + min(t, work.sequence.length - 1) * p.v_token, t < work.sequence.length);
    }
  }
  ptx::copy_async_commit();
}

template <class Tile>
__device__ __forceinline__ void request_state(const nvidia::PreviewDeltaParams& p, const BlockWork& work, int row) {
  if (row >= 0) {
    constexpr int kUnits = Tile::kKeyDim / 4;
    const bool present = work.sequence.slot >= 0;
    const float* pool = p.state;
    if (present)
      pool += work.sequence.slot * p.state_slot + work.head * p.state_head + (work.first_row + row) * p.state_v;
    const int unit = threadIdx.x % kUnits;
    int at = threadIdx.x % 32 / kUnits;
    const float* from = present ? pool + at * p.state_v + unit * 4 : pool;
    const int64_t step = present ? 32 / kUnits * p.state_v : 0;
#pragma unroll 4
    for (; at < 16; at += 32 / kUnits, from += step) {
      ptx::copy_async_16(Tile::state() + 4 * Tile::state_unit(row + at, unit), from, present);
    }
  }
  ptx::copy_async_commit();
}

// g and beta of this thread's token; they pass through registers, since they need not be aligned.
__device__ __forceinline__ float2 request_gates(const nvidia::PreviewDeltaParams& p, const BlockWork& work) {
  const int t = threadIdx.x;
  if (t >= work.sequence.length) return {0.0f, 0.0f};
  return {p.g[(work.sequence.first + t) * p.g_token + work.head * p.g_head],
          p.beta[(work.sequence.first + t) * p.beta_token + work.head * p.beta_head]};
}

// decay[i][j] for i >= j. Every entry is exp of its own span's sum: a lane takes a column, a warp a range of rows.
template <class Tile>
__device__ __forceinline__ void fill_decays() {
  constexpr int kRange = Tile::kWidth / Tile::kWarps;
  const int warp = threadIdx.x / 32;
  const int first = warp * kRange + 1;
  for (int column = threadIdx.x % 32; column < Tile::kWidth; column += 32) {
    float sum = 0.0f;
#pragma unroll 4
    for (int before = 0; before < warp; ++before) {
#pragma unroll
      for (int i = 0; i < kRange; ++i) {
        const float g = Tile::g()[before * kRange + i];
        sum += before * kRange + i >= column ? g : 0.0f;
      }
    }
#pragma unroll
    for (int i = first; i < first + kRange; ++i) {
      if (i > column) sum += Tile::g()[i - 1];
      if (i >= column) Tile::decay()[i * Tile::kDecayStride + column] = expf(sum);
    }
  }
  if (threadIdx.x == 0) {
    Tile::decay()[0] = 1.0f;
    Tile::decay()[Tile::kWidth * Tile::kDecayStride + Tile::kWidth] = 1.0f;
  }
}

template <class Tile>
__device__ __forceinline__ void fill_norms(bool l2norm) {
  constexpr int kLanes = Tile::kThreads / (2 * Tile::kWidth);
  const int row = threadIdx.x / kLanes;
  float squares = 0.0f;
#pragma unroll
  for (int i = threadIdx.x % kLanes; i < Tile::kKeyDim / 2; i += kLanes) {
    uint32_t pair = reinterpret_cast<const uint32_t*>(Tile::keys() + row * Tile::kKeyStride)[i];
    float x = ptx::bf16_low(pair), y = ptx::bf16_high(pair);
    if constexpr (Tile::kSplits == 2) {
      pair = reinterpret_cast<const uint32_t*>(Tile::keys() + Tile::kKeyTerm + row * Tile::kKeyStride)[i];
      x += ptx::bf16_low(pair);
      y += ptx::bf16_high(pair);
    }
    squares = fmaf(x, x, fmaf(y, y, squares));
  }
  squares = sum_over_lanes<kLanes>(squares);
  if (threadIdx.x % kLanes == 0) Tile::norm()[row] = l2norm ? rsqrtf(squares + 1e-6f) : 1.0f;
}

// Rows [row, row + 16) of a key-like matrix at columns [16 c, 16 c + 16), as the left operand. The sum over columns may
// run in any order; here a lane owns four neighbours, in both operands, so that one 64-bit read brings them.
__device__ __forceinline__ void load_left(uint32_t (&a)[4], const Bf16* rows, int stride, int c, int lane) {
  const Bf16* from = rows + (lane / 4) * stride + c * 16 + lane % 4 * 4;
  const uint2 top = *reinterpret_cast<const uint2*>(from);
  const uint2 bottom = *reinterpret_cast<const uint2*>(from + 8 * stride);
  a[0] = top.x;
  a[1] = bottom.x;
  a[2] = top.y;
  a[3] = bottom.y;
}

__device__ __forceinline__ uint2 load_right(const Bf16* rows, int stride, int c, int lane) {
  return *reinterpret_cast<const uint2*>(rows + (lane / 4) * stride + c * 16 + lane % 4 * 4);
}

// Forms k k^T and q k^T, then the systems and their right sides, with beta and the scale folded into the columns.
// Entries of rows or columns past the sequence are zero.
template <class Tile>
__device__ __forceinline__ void form_systems(int length, float scale, Shape shape) {
  constexpr int kStripes = 2 * Tile::kWidth / 16;    // of 16 rows: those of k, then those of q
  constexpr int kSharers = Tile::kWarps / kStripes;  // warps that share one stripe
  constexpr int kColumnTiles = Tile::kWidth / 8;
  constexpr int kTiles = kColumnTiles > kSharers ? kColumnTiles / kSharers : 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int stripe = warp % kStripes;
  const int first_tile = warp / kStripes * kTiles;
  const bool works = first_tile < kColumnTiles;

  float sums[kTiles][4] = {};
  if (works) {
#pragma unroll
    for (int c = 0; c < Tile::kKeyDim / 16; ++c) {
      uint32_t a[Tile::kSplits][4];
#pragma unroll
      for (int term = 0; term < Tile::kSplits; ++term) {
        load_left(a[term], Tile::keys() + term * Tile::kKeyTerm + stripe * 16 * Tile::kKeyStride, Tile::kKeyStride, c,
                  lane);
      }
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int term = 0; term < Tile::kSplits; ++term) {
          const uint2 b = load_right(Tile::keys() + term * Tile::kKeyTerm + (first_tile + n) * 8 * Tile::kKeyStride,
                                     Tile::kKeyStride, c, lane);
          ptx::mma_bf16(sums[n], a[0], b.x, b.y);
          if (Tile::kSplits == 2 && term == 0) ptx::mma_bf16(sums[n], a[Tile::kSplits - 1], b.x, b.y);
        }
      }
    }
  }
  __syncthreads();  // the decays and norms are there
  if (!works) return;

#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int stacked = stripe * 16 + lane / 4 + half * 8;
      const bool is_read = stacked >= Tile::kWidth;
      const int t = is_read ? stacked - Tile::kWidth : stacked;
      const int first_column = (first_tile + n) * 8 + lane % 4 * 2;
      float below[2], above[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int s = first_column + i;
        // E(t, s) below the diagonal; above it the reverse recurrence, whose read does not decay: E(s-1, t), and
        // whose system does: E(s-1, t-1). Tokens count from 1 in the table.
        int later = t + 1, earlier = s + 1;
        bool is_reverse = s > t;
        if (is_reverse) {
          later = s;
          earlier = is_read ? t + 1 : t;
        }
        if (is_read && shape == Shape::kFull) {
          later = Tile::kWidth;
          earlier = s + 1;
          is_reverse = false;
        }
        bool present = t < length && s < length && (is_read || s != t);
        if (is_read && is_reverse && shape == Shape::kLower) present = false;
        const float factor = Tile::beta()[s] * Tile::norm()[s] * Tile::norm()[stacked] * (is_read ? scale : 1.0f);
        const float value =
            present ? Tile::decay()[later * Tile::kDecayStride + earlier] * factor * sums[n][half * 2 + i] : 0.0f;
        below[i] = is_read && is_reverse ? 0.0f : value;
        above[i] = is_reverse ? value : 0.0f;
      }
      const int at = t * Tile::kSquareStride + first_column;
      *reinterpret_cast<float2*>((is_read ? Tile::forward() : Tile::system()) + at) = make_float2(below[0], below[1]);
      if (is_read) *reinterpret_cast<float2*>(Tile::reverse() + at) = make_float2(above[0], above[1]);
    }
  }
}

// One row y of Y from y (I + system) = right side, in place, in blocks of 16 columns. The forward system is strictly
// lower (walk the columns down), the reverse one strictly upper (walk them up). `last` is the last column of a forward
// row, or the last one that is not of a reverse row, that may differ from zero.
template <class Tile, bool kReverse>
__device__ __forceinline__ void solve_row(int t, int last) {
  constexpr int kBlock = 16;
  constexpr int kBlocks = Tile::kWidth / kBlock;
  float* own = (kReverse ? Tile::reverse() : Tile::forward()) + t * Tile::kSquareStride;

#pragma unroll 1
  for (int step = 0; step < kBlocks; ++step) {
    const int begin = (kReverse ? step : kBlocks - 1 - step) * kBlock;
    if (kReverse ? begin + kBlock - 1 <= last : begin > last) continue;
    float x[kBlock];
#pragma unroll
    for (int i = 0; i < kBlock; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(own + begin + i);
      x[i] = four.x;
      x[i + 1] = four.y;
      x[i + 2] = four.z;
      x[i + 3] = four.w;
    }
    auto subtract = [&](float known, const float* row) {
#pragma unroll
      for (int i = 0; i < kBlock; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(row + i);
        x[i] = fmaf(-known, four.x, x[i]);
        x[i + 1] = fmaf(-known, four.y, x[i + 1]);
        x[i + 2] = fmaf(-known, four.z, x[i + 2]);
        x[i + 3] = fmaf(-known, four.w, x[i + 3]);
      }
    };
    // Columns already solved, four at a time, from the nearest outwards so that all lanes read the same rows.
#pragma unroll 1
    for (int r = kReverse ? begin - 4 : begin + kBlock;
         kReverse ? r >= 0 && r + 3 > last : r < Tile::kWidth && r <= last; r += kReverse ? -4 : 4) {
      const float4 known = *reinterpret_cast<const float4*>(own + r);
      const float* row = Tile::system() + r * Tile::kSquareStride + begin;
      subtract(known.x, row);
      subtract(known.y, row + Tile::kSquareStride);
      subtract(known.z, row + 2 * Tile::kSquareStride);
      subtract(known.w, row + 3 * Tile::kSquareStride);
    }
#pragma unroll
    for (int j = 0; j < kBlock - 1; ++j) {
      const int r = kReverse ? j : kBlock - 1 - j;
      const float* row = Tile::system() + (begin + r) * Tile::kSquareStride + begin;
#pragma unroll
      for (int i = 0; i < kBlock; i += 4) {
        if (kReverse ? i + 3 <= r : i >= r) continue;
        const float4 four = *reinterpret_cast<const float4*>(row + i);
        if (kReverse ? i > r : i < r) x[i] = fmaf(-x[r], four.x, x[i]);
        if (kReverse ? i + 1 > r : i + 1 < r) x[i + 1] = fmaf(-x[r], four.y, x[i + 1]);
        if (kReverse ? i + 2 > r : i + 2 < r) x[i + 2] = fmaf(-x[r], four.z, x[i + 2]);
        if (kReverse ? i + 3 > r : i + 3 < r) x[i + 3] = fmaf(-x[r], four.w, x[i + 3]);
      }
    }
#pragma unroll
    for (int i = 0; i < kBlock; i += 4) {
      *reinterpret_cast<float4*>(own + begin + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
    }
  }
}

template <class Tile>
__device__ __forceinline__ void solve_systems(Shape shape) {
  if (threadIdx.x >= Tile::kSolverThreads) return;
  const int t = threadIdx.x % Tile::kWidth;
  if (threadIdx.x < Tile::kWidth) {
    solve_row<Tile, false>(t, shape == Shape::kFull ? Tile::kWidth - 1 : t);
  } else if (shape == Shape::kLowerAndUpper) {
    solve_row<Tile, true>(t, t);
  }
}

// An FP32 pair as two BF16 terms.
__device__ __forceinline__ void split_pair(float x, float y, uint32_t& high, uint32_t& low) {
  high = ptx::pack_bf16(x, y);
  low = ptx::pack_bf16(x - ptx::bf16_low(high), y - ptx::bf16_high(high));
}

// S k and S q for this warp's 16 rows: columns of k, then of q, as accumulator fragments.
template <class Tile>
__device__ __forceinline__ void multiply_state(int first_row, float (&sums)[2 * Tile::kWidth / 8][4]) {
  constexpr int kTiles = 2 * Tile::kWidth / 8;
  const int lane = threadIdx.x % 32;
  const int row = first_row + lane / 4;
  const float4* state = reinterpret_cast<const float4*>(Tile::state());
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[n][i] = 0.0f;
  }
#pragma unroll 2
  for (int c = 0; c < Tile::kKeyDim / 16; ++c) {
    const float4 top = state[Tile::state_unit(row, c * 4 + lane % 4)];
    const float4 bottom = state[Tile::state_unit(row + 8, c * 4 + lane % 4)];
    uint32_t high[4], low[4];
    split_pair(top.x, top.y, high[0], low[0]);
    split_pair(bottom.x, bottom.y, high[1], low[1]);
    split_pair(top.z, top.w, high[2], low[2]);
    split_pair(bottom.z, bottom.w, high[3], low[3]);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const uint2 b = load_right(Tile::keys() + n * 8 * Tile::kKeyStride, Tile::kKeyStride, c, lane);
      ptx::mma_bf16(sums[n], high, b.x, b.y);
      ptx::mma_bf16(sums[n], low, b.x, b.y);
      if constexpr (Tile::kSplits == 2) {
        const uint2 b_low =
            load_right(Tile::keys() + Tile::kKeyTerm + n * 8 * Tile::kKeyStride, Tile::kKeyStride, c, lane);
        ptx::mma_bf16(sums[n], high, b_low.x, b_low.y);
      }
    }
  }
}

// Turns S q (the second half of `sums`) into the outputs of this warp's 16 rows: element 0, 1 of tile n are tokens
// 8 n + 2 (lane % 4) + {0, 1} of row lane / 4; elements 2, 3 the same of row lane / 4 + 8.
template <class Tile>
__device__ __forceinline__ void combine(int first_row, float scale, Shape shape,
                                        float (&sums)[2 * Tile::kWidth / 8][4]) {
  constexpr int kTiles = Tile::kWidth / 8;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = n * 8 + lane % 4 * 2 + i;
      const float past = -Tile::decay()[(t + 1) * Tile::kDecayStride] * Tile::norm()[t];
      const float read = scale * Tile::decay()[(shape == Shape::kFull ? Tile::kWidth : t + 1) * Tile::kDecayStride] *
                         Tile::norm()[Tile::kWidth + t];
      sums[n][i] *= past;
      sums[n][i + 2] *= past;
      sums[kTiles + n][i] *= read;
      sums[kTiles + n][i + 2] *= read;
    }
  }
#pragma unroll
  for (int step = 0; step < Tile::kWidth / 16; ++step) {
    uint32_t v[Tile::kSplits][4], high[4], low[4];
#pragma unroll
    for (int term = 0; term < Tile::kSplits; ++term) {
      ptx::load_matrices_transposed(v[term], Tile::values() + term * Tile::kValueTerm +
                                                 (step * 16 + lane / 16 * 8 + lane % 8) * Tile::kValueStride +
                                                 first_row + (lane / 8) % 2 * 8);
    }
    // The accumulators of S k have the very layout of a left operand.
    split_pair(sums[2 * step][0], sums[2 * step][1], high[0], low[0]);
    split_pair(sums[2 * step][2], sums[2 * step][3], high[1], low[1]);
    split_pair(sums[2 * step + 1][0], sums[2 * step + 1][1], high[2], low[2]);
    split_pair(sums[2 * step + 1][2], sums[2 * step + 1][3], high[3], low[3]);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      float (&out)[4] = sums[kTiles + n];
      const int t = n * 8 + lane / 4;
      const int s = step * 16 + lane % 4 * 2;
      auto load_split = [&](const float* square, uint32_t (&y_high)[2], uint32_t (&y_low)[2]) {
        const float2 first = *reinterpret_cast<const float2*>(square + t * Tile::kSquareStride + s);
        const float2 second = *reinterpret_cast<const float2*>(square + t * Tile::kSquareStride + s + 8);
        split_pair(first.x, first.y, y_high[0], y_low[0]);
        split_pair(second.x, second.y, y_high[1], y_low[1]);
      };
      auto multiply_values = [&](const uint32_t (&y_high)[2], const uint32_t (&y_low)[2]) {
        ptx::mma_bf16(out, v[0], y_high[0], y_high[1]);
        ptx::mma_bf16(out, v[0], y_low[0], y_low[1]);
        if constexpr (Tile::kSplits == 2) ptx::mma_bf16(out, v[1], y_high[0], y_high[1]);
      };
      uint32_t y_high[2], y_low[2];
      // The two triangles share the tiles on the diagonal only.
      if (shape == Shape::kLowerAndUpper && step * 16 + 15 > n * 8) {
        load_split(Tile::reverse(), y_high, y_low);
        multiply_values(y_high, y_low);
      }
      if (shape == Shape::kFull || step * 16 <= n * 8 + 7) {
        load_split(Tile::forward(), y_high, y_low);
        multiply_values(y_high, y_low);
        ptx::mma_bf16(out, high, y_high[0], y_high[1]);
        ptx::mma_bf16(out, low, y_high[0], y_high[1]);
        ptx::mma_bf16(out, high, y_low[0], y_low[1]);
      }
    }
  }
}

// Rounds the outputs once and writes them through shared memory (this warp's own columns of v, which are done with),
// 32 bytes a token.
template <class T, class Tile>
__device__ __forceinline__ void store_outputs(int row, const float (&sums)[2 * Tile::kWidth / 8][4], T* out,
                                              int64_t token_stride, int length) {
  const int lane = threadIdx.x % 32;
  T* stage = reinterpret_cast<T*>(Tile::values()) + row;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < Tile::kWidth / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      stage[(n * 8 + lane % 4 * 2 + i % 2) * Tile::kValueStride + lane / 4 + i / 2 * 8] =
          from_float<T>(sums[Tile::kWidth / 8 + n][i]);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 2 * Tile::kWidth; i += 32) {
    const int t = i / 2;
    if (t < length) {
      *reinterpret_cast<uint4*>(out + t * token_stride + row + i % 2 * 8) =
          *reinterpret_cast<const uint4*>(stage + t * Tile::kValueStride + i % 2 * 8);
    }
  }
  __syncwarp();
}

}  // namespace clover::delta
