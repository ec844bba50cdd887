// preview_gdn: convolution, gating, preview and gated norm of one value head in one block (or cluster of blocks), with
// every intermediate in FP32 or in two BF16 terms. preview_block.cuh has the delta rule.
#include "backends/nvidia/kernels/delta/preview_block.cuh"
#include "backends/nvidia/kernels/delta/preview_gdn.h"

namespace clover::delta {
namespace {

using nvidia::PreviewGdnParams;

__device__ __forceinline__ float silu(float x) {
  return __fdividef(x, 1.0f + __expf(-x));
}

// Two neighbouring 16-bit values as loaded.
template <class T>
__device__ __forceinline__ float2 unpack(uint32_t pair);
template <>
__device__ __forceinline__ float2 unpack<__nv_bfloat16>(uint32_t pair) {
  return {ptx::bf16_low(pair), ptx::bf16_high(pair)};
}
template <>
__device__ __forceinline__ float2 unpack<__half>(uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

// silu of the convolution for two neighbouring channels of tokens [first, first + kTokens), written as BF16 terms to
// rows of `to`. Tokens past the sequence become zeros. All loads are issued before any of them is looked at.
template <class T, int kTokens>
__device__ __forceinline__ void convolve(Bf16* to, int stride, int term, const PreviewGdnParams& p,
                                         const Sequence& sequence, int channel, int first) {
  const T* x = static_cast<const T*>(p.qkv) + sequence.first * p.qkv_token + channel;
  const T* weight = static_cast<const T*>(p.conv_weight) + static_cast<int64_t>(channel) * p.weight_channel;
  const T* bias = static_cast<const T*>(p.conv_bias);
  const T zero = from_float<T>(0.0f);
  uint32_t raw[kTokens + 3];
#pragma unroll
  for (int i = 0; i < kTokens + 3; ++i) {
    const int t = max(0, min(first + i - 3, sequence.length - 1));
    raw[i] = *reinterpret_cast<const uint32_t*>(x + t * p.qkv_token);
  }
  const uint2 even = *reinterpret_cast<const uint2*>(weight);
  const uint2 odd = *reinterpret_cast<const uint2*>(weight + p.weight_channel);
  const T bias_even = bias != nullptr ? bias[channel] : zero;
  const T bias_odd = bias != nullptr ? bias[channel + 1] : zero;
  T past[3][2];
  const bool has_past = first == 0 && sequence.slot >= 0;
  const T* state = static_cast<const T*>(p.conv_state) +
                   (has_past ? sequence.slot * p.conv_slot + static_cast<int64_t>(channel) * p.conv_channel : 0);
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    past[i][0] = has_past ? state[i * p.conv_column] : zero;
    past[i][1] = has_past ? state[i * p.conv_column + p.conv_channel] : zero;
  }

  const float2 w01 = unpack<T>(even.x), w23 = unpack<T>(even.y), v01 = unpack<T>(odd.x), v23 = unpack<T>(odd.y);
  const float2 w[4] = {{w01.x, v01.x}, {w01.y, v01.y}, {w23.x, v23.x}, {w23.y, v23.y}};
  float2 window[4];
#pragma unroll
  for (int i = 0; i < kTokens + 3; ++i) {
    window[i % 4] = unpack<T>(raw[i]);
    if (i < 3 && first == 0) window[i % 4] = {to_float(past[i % 3][0]), to_float(past[i % 3][1])};
    if (i < 3) continue;
    const int t = first + i - 3;
    float2 sum = {to_float(bias_even), to_float(bias_odd)};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 z = window[(i - 3 + j) % 4];
      sum.x = fmaf(w[j].x, z.x, sum.x);
      sum.y = fmaf(w[j].y, z.y, sum.y);
    }
    uint32_t high, low;
    split_pair(silu(sum.x), silu(sum.y), high, low);
    *reinterpret_cast<uint32_t*>(to + t * stride) = t < sequence.length ? high : 0;
    *reinterpret_cast<uint32_t*>(to + t * stride + term) = t < sequence.length ? low : 0;
  }
}

// Keys, queries and this block's part of the values.
template <class T, class Tile>
__device__ __forceinline__ void convolve_all(const PreviewGdnParams& p, const BlockWork& work) {
  constexpr int kTokens = 16;
  constexpr int kPairs = Tile::kKeyDim + Tile::kRows / 2;  // of channels: those of k, of q, of v
  const int width = p.delta.heads * Tile::kKeyDim;         // all query channels; as many key channels follow
#pragma unroll 1
  for (int i = threadIdx.x; i < kPairs * (Tile::kWidth / kTokens); i += Tile::kThreads) {
    const int pair = i % kPairs, first = i / kPairs * kTokens;
    if (pair < Tile::kKeyDim) {
      const bool is_query = pair >= Tile::kKeyDim / 2;
      const int column = pair % (Tile::kKeyDim / 2) * 2;
      convolve<T, kTokens>(Tile::keys() + (is_query ? Tile::kWidth * Tile::kKeyStride : 0) + column, Tile::kKeyStride,
                           Tile::kKeyTerm, p, work.sequence,
                           (is_query ? 0 : width) + work.key_head * Tile::kKeyDim + column, first);
    } else {
      const int column = (pair - Tile::kKeyDim) * 2;
      convolve<T, kTokens>(Tile::values() + column, Tile::kValueStride, Tile::kValueTerm, p, work.sequence,
                           2 * width + work.head * p.delta.value_dim + work.first_row + column, first);
    }
  }
}

template <class T, class Tile>
__device__ __forceinline__ void form_gates(const PreviewGdnParams& p, const BlockWork& work) {
  const int t = threadIdx.x;
  if (t >= Tile::kWidth) return;
  float g = 0.0f, beta = 0.0f;
  if (t < work.sequence.length) {
    const int64_t token = work.sequence.first + t;
    const float x = to_float(static_cast<const T*>(p.a)[token * p.a_token + work.head * p.a_head]) +
                    to_float(static_cast<const T*>(p.dt_bias)[work.head]);
    const float b = to_float(static_cast<const T*>(p.b)[token * p.b_token + work.head * p.b_head]);
    const float a_log = p.a_log[work.head];
    // Far below zero softplus is exp, and one exponential of the sum stays finite where the product would not.
    g = x < -15.0f ? -expf(a_log + x) : -expf(a_log) * (x > 20.0f ? x : log1pf(expf(x)));
    beta = 1.0f / (1.0f + expf(-b));
  }
  Tile::g()[t] = g;
  Tile::beta()[t] = beta;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CLOVER_HAS_CLUSTERS 1
#else
#define CLOVER_HAS_CLUSTERS 0
#endif

__device__ __forceinline__ void cluster_barrier() {
#if CLOVER_HAS_CLUSTERS
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// Stores a float at the same place of the shared memory of another block of the cluster.
__device__ __forceinline__ void store_remote(float* shared, int rank, float value) {
#if CLOVER_HAS_CLUSTERS
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(ptx::shared_address(shared)), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
#endif
}

// Sums of squares over the head's rows, by token, at the returned place. Uses the space of the solved system.
template <class Tile>
__device__ __forceinline__ const float* sum_squares(int row, const float (&sums)[2 * Tile::kWidth / 8][4]) {
  constexpr int kBlocks = 128 / Tile::kRows;
  float* by_warp = Tile::system();                              // [kRows / 16][kWidth]
  float* by_block = by_warp + Tile::kRows / 16 * Tile::kWidth;  // [kBlocks][kWidth]
  float* total = by_block + kBlocks * Tile::kWidth;
  static_assert((Tile::kRows / 16 + kBlocks + 1) * Tile::kWidth <= Tile::kWidth * Tile::kSquareStride);
  const int lane = threadIdx.x % 32;
  if (row >= 0) {
#pragma unroll
    for (int n = 0; n < Tile::kWidth / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float x = sums[Tile::kWidth / 8 + n][i], y = sums[Tile::kWidth / 8 + n][i + 2];
        float squares = fmaf(x, x, y * y);
        squares += __shfl_xor_sync(0xffffffffu, squares, 4);
        squares += __shfl_xor_sync(0xffffffffu, squares, 8);
        squares += __shfl_xor_sync(0xffffffffu, squares, 16);
        if (lane < 4) by_warp[row / 16 * Tile::kWidth + n * 8 + lane * 2 + i] = squares;
      }
    }
  }
  __syncthreads();
  if (threadIdx.x < Tile::kWidth) {
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < Tile::kRows / 16; ++w) sum += by_warp[w * Tile::kWidth + threadIdx.x];
    float* place = by_block + blockIdx.x * Tile::kWidth + threadIdx.x;
    if constexpr (kBlocks == 1) {
      *place = sum;
    } else {
      for (int rank = 0; rank < kBlocks; ++rank) store_remote(place, rank, sum);
    }
  }
  if constexpr (kBlocks == 1) {
    __syncthreads();
  } else {
    cluster_barrier();
  }
  if (threadIdx.x < Tile::kWidth) {
    float sum = 0.0f;
#pragma unroll
    for (int rank = 0; rank < kBlocks; ++rank) sum += by_block[rank * Tile::kWidth + threadIdx.x];
    total[threadIdx.x] = sum;
  }
  __syncthreads();
  return total;
}

template <class T, class Tile>
__device__ __forceinline__ void norm_and_gate(const PreviewGdnParams& p, const BlockWork& work, int row,
                                              float (&sums)[2 * Tile::kWidth / 8][4]) {
  const int lane = threadIdx.x % 32;
  const int first_row = work.first_row + row + lane / 4;
  const T* z = static_cast<const T*>(p.z) + work.sequence.first * p.z_token + work.head * p.z_head + first_row;
  float gate[Tile::kWidth / 8][4];
  if (row >= 0) {
#pragma unroll
    for (int n = 0; n < Tile::kWidth / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int t = n * 8 + lane % 4 * 2 + i % 2;
        gate[n][i] = t < work.sequence.length ? to_float(z[t * p.z_token + i / 2 * 8]) : 0.0f;
      }
    }
  }
  const float* squares = sum_squares<Tile>(row, sums);
  if (row < 0) return;
  const T* weight = static_cast<const T*>(p.norm_weight) + first_row;
  const float weights[2] = {to_float(weight[0]), to_float(weight[8])};
#pragma unroll
  for (int n = 0; n < Tile::kWidth / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = n * 8 + lane % 4 * 2 + i % 2;
      sums[Tile::kWidth / 8 + n][i] *= rsqrtf(squares[t] * (1.0f / 128) + p.eps) * weights[i / 2] * silu(gate[n][i]);
    }
  }
}

template <class T, class Tile>
__device__ __forceinline__ void preview_gdn(const PreviewGdnParams& p) {
  const BlockWork work = find_work<Tile>(p.delta);
  // The blocks of a cluster work on one head of one sequence, so they leave together.
  if (work.sequence.length <= p.above || work.sequence.length > Tile::kWidth) return;
  const Shape shape = shape_of(p.delta.read);
  const int row = (static_cast<int>(threadIdx.x) / 32 - Tile::kFirstProductWarp) * 16;
  request_state<Tile>(p.delta, work, row);
  form_gates<T, Tile>(p, work);
  convolve_all<T, Tile>(p, work);
  __syncthreads();
  fill_decays<Tile>();
  fill_norms<Tile>(true);
  form_systems<Tile>(work.sequence.length, p.delta.scale, shape);
  __syncthreads();
  solve_systems<Tile>(shape);
  ptx::copy_async_wait<0>();
  __syncwarp();
  float sums[2 * Tile::kWidth / 8][4];
  if (row >= 0) multiply_state<Tile>(row, sums);
  __syncthreads();
  if (row >= 0) combine<Tile>(row, p.delta.scale, shape, sums);
  if (p.z != nullptr) {
    if constexpr (Tile::kRows < 128) cluster_barrier();  // every block is past its systems, whose space is used again
    norm_and_gate<T, Tile>(p, work, row, sums);
  }
  if (row < 0) return;
  T* out =
      static_cast<T*>(p.delta.o) + work.sequence.first * p.delta.o_token + work.head * p.delta.o_head + work.first_row;
  store_outputs<T, Tile>(row, sums, out, p.delta.o_token, work.sequence.length);
}

using kBFloat16 = __nv_bfloat16;
using kFloat16 = __half;

}  // namespace
}  // namespace clover::delta

#if CLOVER_HAS_CLUSTERS
#define CLOVER_CLUSTER(rows) __cluster_dims__(128 / (rows), 1, 1)
#else
#define CLOVER_CLUSTER(rows)
#endif

// Without clusters only whole heads can be normed; the other kernels are then never launched.
#define CLOVER_GDN_KERNEL(dtype, tag, width, rows)                                                                     \
  extern "C" __global__ void CLOVER_CLUSTER(rows) __launch_bounds__(256, (width) == 64 || (rows) == 128 ? 1 : 2)       \
      clover_preview_gdn_##tag##_w##width##_v##rows(const __grid_constant__ clover::nvidia::PreviewGdnParams params) { \
    if constexpr (CLOVER_HAS_CLUSTERS || (rows) == 128) {                                                              \
      clover::delta::preview_gdn<clover::delta::dtype, clover::delta::BlockTile<128, width, rows, 2>>(params);         \
    }                                                                                                                  \
  }
CLOVER_PREVIEW_GDN_KERNELS(CLOVER_GDN_KERNEL)
