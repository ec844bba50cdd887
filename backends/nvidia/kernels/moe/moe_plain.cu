// The mixture of experts on ordinary FP32 arithmetic: any size, any row stride, any of the three types. FP32 data takes
// it always. Sums are cut into blocks of 256 terms, so that a long inner dimension costs no accuracy.
#include "backends/nvidia/kernels/moe/moe_common.cuh"

namespace clover::nvidia::moe {

constexpr int kRows = 64;  // of the weights, in one block
constexpr int kStep = 32;  // inner dimension
constexpr int kTokens = kPlainTokens;

struct PlainTiles {
  float weights[2][kStep][kRows + 4];
  float tokens[2][kStep][kTokens + 4];
};

// out[i][j] = the product of weight row 4 * (thread % 16) + i with token row 2 * (thread / 16) + j.
// `weight_row(r)` and `token_row(r)` give row pointers, or null for rows that do not exist.
template <class T, class WeightRow, class TokenRow>
__device__ void multiply(PlainTiles& tiles, int inner, WeightRow weight_row, TokenRow token_row, float (&out)[4][2]) {
  const int thread = threadIdx.x, column = thread % 32, row0 = thread / 32;
  const int r = thread % 16 * 4, t = thread / 16 * 2;
  const T* weight_rows[8];
  const T* token_rows[4];
#pragma unroll
  for (int i = 0; i < 8; ++i) weight_rows[i] = weight_row(row0 + i * 8);
#pragma unroll
  for (int i = 0; i < 4; ++i) token_rows[i] = token_row(row0 + i * 8);
  float next_weights[8], next_tokens[4];
  auto fetch = [&](int k0) {
    const int k = k0 + column;
#pragma unroll
    for (int i = 0; i < 8; ++i) next_weights[i] = weight_rows[i] && k < inner ? to_float(weight_rows[i][k]) : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) next_tokens[i] = token_rows[i] && k < inner ? to_float(token_rows[i][k]) : 0.0f;
  };
  float block[4][2] = {};
  fetch(0);
  int buffer = 0;
  for (int k0 = 0; k0 < inner; k0 += kStep, buffer ^= 1) {
#pragma unroll
    for (int i = 0; i < 8; ++i) tiles.weights[buffer][column][row0 + i * 8] = next_weights[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) tiles.tokens[buffer][column][row0 + i * 8] = next_tokens[i];
    __syncthreads();
    if (k0 + kStep < inner) fetch(k0 + kStep);
#pragma unroll
    for (int k = 0; k < kStep; ++k) {
      const float4 w = *reinterpret_cast<const float4*>(&tiles.weights[buffer][k][r]);
      const float2 v = *reinterpret_cast<const float2*>(&tiles.tokens[buffer][k][t]);
      block[0][0] += w.x * v.x, block[0][1] += w.x * v.y;
      block[1][0] += w.y * v.x, block[1][1] += w.y * v.y;
      block[2][0] += w.z * v.x, block[2][1] += w.z * v.y;
      block[3][0] += w.w * v.x, block[3][1] += w.w * v.y;
    }
    if ((k0 + kStep) % 256 == 0 || k0 + kStep >= inner) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          out[i][j] += block[i][j];
          block[i][j] = 0.0f;
        }
      }
    }
  }
}

// inner[position] = silu(w1 x) * (w3 x) for 32 of the expert's rows; rows of a tile alternate gate, up.
template <class T>
__device__ void plain_up(const MoeParams& p) {
  __shared__ __align__(16) PlainTiles tiles;
  if (static_cast<int>(blockIdx.x) >= p.head[kEntries]) return;
  const MoeEntry entry = p.entries[blockIdx.x];
  const Expert<T> expert = find_expert<T>(p, entry.expert);
  const int row0 = blockIdx.y * (kRows / 2);
  if (row0 >= expert.intermediate) return;
  auto weight_row = [&](int r) -> const T* {
    const int row = row0 + r / 2;
    if (row >= expert.intermediate) return nullptr;
    return expert.w13 + (r % 2 ? expert.intermediate + row : row) * expert.w13_row;
  };
  auto token_row = [&](int r) -> const T* {
    if (r >= entry.count) return nullptr;
    const int token = expert.shared ? entry.first + r : p.order[entry.first + r] / p.top_k;
    return static_cast<const T*>(p.x) + token * p.x_row;
  };
  float product[4][2] = {};
  multiply<T>(tiles, p.hidden, weight_row, token_row, product);
  T* inner = static_cast<T*>(expert.shared ? p.shared_inner : p.inner);
  const int row = row0 + threadIdx.x % 16 * 2, token = threadIdx.x / 16 * 2;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      if (row + i >= expert.intermediate || token + j >= entry.count) continue;
      const float gate = product[i * 2][j], up = product[i * 2 + 1][j];
      inner[static_cast<int64_t>(entry.first + token + j) * expert.intermediate + row + i] =
          from_float<T>(gate / (1.0f + expf(-gate)) * up);
    }
  }
}

template <class T>
__device__ void plain_down(const MoeParams& p) {
  __shared__ __align__(16) PlainTiles tiles;
  if (static_cast<int>(blockIdx.x) >= p.head[kEntries]) return;
  const MoeEntry entry = p.entries[blockIdx.x];
  const Expert<T> expert = find_expert<T>(p, entry.expert);
  const int row0 = blockIdx.y * kRows;
  const T* inner = static_cast<const T*>(expert.shared ? p.shared_inner : p.inner);
  auto weight_row = [&](int r) -> const T* {
    return row0 + r < p.hidden ? expert.w2 + (row0 + r) * expert.w2_row : nullptr;
  };
  auto token_row = [&](int r) -> const T* {
    return r < entry.count ? inner + static_cast<int64_t>(entry.first + r) * expert.intermediate : nullptr;
  };
  float product[4][2] = {};
  multiply<T>(tiles, expert.intermediate, weight_row, token_row, product);
  const int row = row0 + threadIdx.x % 16 * 4, token = threadIdx.x / 16 * 2;
  for (int j = 0; j < 2; ++j) {
    if (token + j >= entry.count) continue;
    const int position = entry.first + token + j;
    float* out = expert.shared ? p.shared_partial + static_cast<int64_t>(position) * p.hidden
                               : p.partial + static_cast<int64_t>(p.order[position]) * p.hidden;
    for (int i = 0; i < 4; ++i) {
      if (row + i < p.hidden) out[row + i] = product[i][j];
    }
  }
}

template <class T>
__device__ void plain_sum(const MoeParams& p) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  if (column >= p.hidden) return;
  for (int token = blockIdx.y; token < p.tokens; token += gridDim.y) {
    float sum = 0.0f;
    for (int j = 0; j < p.top_k; ++j) {
      const int id = p.ids[token * p.ids_row + j];
      if (id < 0 || id >= p.experts) continue;
      sum += p.weights[token * p.weights_row + j] *
             p.partial[(static_cast<int64_t>(token) * p.top_k + j) * p.hidden + column];
    }
    sum *= p.routed_scale;
    if (p.shared_entries > 0) {
      sum += p.gates[token] * p.shared_partial[static_cast<int64_t>(token) * p.hidden + column];
    }
    static_cast<T*>(p.y)[token * p.y_row + column] = from_float<T>(sum);
  }
}

#define CLOVER_PLAIN(suffix, T)                                                                         \
  extern "C" __global__ void __launch_bounds__(256) clover_moe_plain_up_##suffix(const MoeParams p) {   \
    plain_up<T>(p);                                                                                     \
  }                                                                                                     \
  extern "C" __global__ void __launch_bounds__(256) clover_moe_plain_down_##suffix(const MoeParams p) { \
    plain_down<T>(p);                                                                                   \
  }                                                                                                     \
  extern "C" __global__ void __launch_bounds__(256) clover_moe_plain_sum_##suffix(const MoeParams p) {  \
    plain_sum<T>(p);                                                                                    \
  }
CLOVER_PLAIN(f32, float)
CLOVER_PLAIN(bf16, __nv_bfloat16)
CLOVER_PLAIN(f16, __half)
#undef CLOVER_PLAIN

}  // namespace clover::nvidia::moe
