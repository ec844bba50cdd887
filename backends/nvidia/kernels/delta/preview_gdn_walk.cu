// preview_gdn for the sequences that its block kernels leave over: any length, token by token, in FP32. One block
// computes one head of one sequence. A hint that was wrong costs time here, and nothing else.
#include "backends/nvidia/kernels/delta/common.cuh"
#include "backends/nvidia/kernels/delta/preview_gdn.h"

namespace clover::delta {
namespace {

constexpr int kDim = 128;                // of keys and of values
constexpr int kLanes = 8;                // that share a row of the state
constexpr int kColumns = kDim / kLanes;  // of it, per lane
constexpr int kThreads = kDim * kLanes;  // every row of a head
constexpr int kSegment = 32;             // outputs of the forward walk that wait for the reverse one
constexpr int kChannels = 3 * kDim;      // of q, k and v
static_assert(kThreads == nvidia::preview_gdn_detail::kWalkThreads);

__device__ __forceinline__ float silu(float x) {
  return x / (1.0f + expf(-x));
}

template <class T>
class GdnWalk {
 public:
  struct Shared {
    float token[kChannels];  // q, k and v after the convolution
    float squares[kChannels / 32];
    float decay, beta;
    float row[kDim];  // one token's outputs, before the norm
    float row_squares[kDim / 32];
    float waiting[kSegment][kDim];
  };

  __device__ GdnWalk(const nvidia::PreviewGdnParams& params, const Sequence& sequence, Shared& shared)
      : p(params),
        s(shared),
        sequence(sequence),
        head(blockIdx.y),
        key_head(head / (params.delta.value_heads / params.delta.heads)),
        row(threadIdx.x / kLanes),
        lane8(threadIdx.x % kLanes) {}

  __device__ void run() {
    if (p.delta.read == nvidia::DeltaRead::kBidirectional) return both_ways();
    const bool causal = p.delta.read == nvidia::DeltaRead::kCausal;
    float state[kColumns];
    load_state(state);
    for (int t = 0; t < sequence.length; ++t) {
      form_token(t);
      advance(state);
      if (causal) emit(t, read(state));
    }
    for (int t = 0; t < sequence.length && !causal; ++t) {
      form_token(t);
      emit(t, read(state));
    }
  }

 private:
  // Segments from the last to the first: the reverse state lives on from one to the next, the forward one is walked
  // again from the start, so that nothing but the output is ever written.
  __device__ void both_ways() {
    float reverse[kColumns] = {};
    for (int begin = (sequence.length - 1) / kSegment * kSegment; begin >= 0; begin -= kSegment) {
      const int end = min(begin + kSegment, sequence.length);
      float state[kColumns];
      load_state(state);
      for (int t = 0; t < end; ++t) {
        form_token(t);
        advance(state);
        if (t < begin) continue;
        const float o = read(state);
        if (lane8 == 0) s.waiting[t - begin][row] = o;
      }
      for (int t = end - 1; t >= begin; --t) {
        form_token(t);
        emit(t, s.waiting[t - begin][row] + read(reverse));
        advance(reverse);
      }
    }
  }

  __device__ static int column(int i, int lane8) { return i / 4 * 32 + lane8 * 4 + i % 4; }

  __device__ void load_state(float (&state)[kColumns]) const {
    const float* pool =
        p.delta.state + sequence.slot * p.delta.state_slot + head * p.delta.state_head + row * p.delta.state_v;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) state[i] = sequence.slot < 0 ? 0.0f : pool[column(i, lane8) * p.delta.state_k];
  }

  // Convolution, gates and the sums that the norms of q and k need, for token t, in shared memory.
  __device__ void form_token(int t) {
    __syncthreads();  // the token before is not looked at any more
    const int i = threadIdx.x;
    if (i < kChannels) {
      const float value = convolve(t, channel_of(i));
      s.token[i] = value;
      const float squares = sum_over_lanes<32>(value * value);
      if (i % 32 == 0) s.squares[i / 32] = squares;
    } else if (i == kChannels) {
      form_gates(t);
    }
    __syncthreads();
  }

  __device__ int channel_of(int i) const {
    const int width = p.delta.heads * kDim, part = i / kDim;
    return part * width + (part == 2 ? head : key_head) * kDim + i % kDim;
  }

  __device__ float convolve(int t, int channel) const {
    const T* x = static_cast<const T*>(p.qkv) + sequence.first * p.qkv_token + channel;
    const T* weight = static_cast<const T*>(p.conv_weight) + static_cast<int64_t>(channel) * p.weight_channel;
    const T* past = static_cast<const T*>(p.conv_state) + max(sequence.slot, 0) * p.conv_slot +
                    static_cast<int64_t>(channel) * p.conv_channel;
    float sum = p.conv_bias == nullptr ? 0.0f : to_float(static_cast<const T*>(p.conv_bias)[channel]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int source = t + j - 3;
      const bool from_past = source < 0;
      if (from_past && sequence.slot < 0) continue;
      const float z = to_float(from_past ? past[static_cast<int64_t>(source + 3) * p.conv_column]
                                         : x[static_cast<int64_t>(source) * p.qkv_token]);
      sum = fmaf(to_float(weight[j]), z, sum);
    }
    return silu(sum);
  }

  __device__ void form_gates(int t) {
    const int64_t token = sequence.first + t;
    const float x = to_float(static_cast<const T*>(p.a)[token * p.a_token + head * p.a_head]) +
                    to_float(static_cast<const T*>(p.dt_bias)[head]);
    const float b = to_float(static_cast<const T*>(p.b)[token * p.b_token + head * p.b_head]);
    s.decay = expf(log_decay(p.a_log[head], x));
    s.beta = 1.0f / (1.0f + expf(-b));
  }

  // Far below zero softplus is exp, and one exponential of the sum stays finite where the product would not.
  __device__ static float log_decay(float a_log, float x) {
    return x < -15.0f ? -expf(a_log + x) : -expf(a_log) * (x > 20.0f ? x : log1pf(expf(x)));
  }

  __device__ float norm_of(int part) const {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kDim / 32; ++i) squares += s.squares[part * (kDim / 32) + i];
    return rsqrtf(squares + 1e-6f);
  }

  __device__ void advance(float (&state)[kColumns]) const {
    const float norm = norm_of(1);
    float key[kColumns], along = 0.0f;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      key[i] = s.token[kDim + column(i, lane8)] * norm;
      state[i] *= s.decay;
      along = fmaf(state[i], key[i], along);
    }
    along = sum_over_lanes<kLanes>(along);
    const float u = s.beta * (s.token[2 * kDim + row] - along);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) state[i] = fmaf(u, key[i], state[i]);
  }

  __device__ float read(const float (&state)[kColumns]) const {
    const float norm = norm_of(0);
    float along = 0.0f;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) along = fmaf(state[i], s.token[column(i, lane8)] * norm, along);
    return p.delta.scale * sum_over_lanes<kLanes>(along);
  }

  // Norm and gate where they are asked for, and the store.
  __device__ void emit(int t, float o) {
    if (lane8 == 0) s.row[row] = o;
    __syncthreads();
    const int i = threadIdx.x;
    const float value = i < kDim ? s.row[i] : 0.0f;
    if (p.z != nullptr) {
      if (i < kDim) {
        const float squares = sum_over_lanes<32>(value * value);
        if (i % 32 == 0) s.row_squares[i / 32] = squares;
      }
      __syncthreads();
    }
    if (i >= kDim) return;
    const int64_t token = sequence.first + t;
    float result = value;
    if (p.z != nullptr) {
      float squares = 0.0f;
#pragma unroll
      for (int warp = 0; warp < kDim / 32; ++warp) squares += s.row_squares[warp];
      const float z = to_float(static_cast<const T*>(p.z)[token * p.z_token + head * p.z_head + i]);
      result *= rsqrtf(squares * (1.0f / kDim) + p.eps) * to_float(static_cast<const T*>(p.norm_weight)[i]) * silu(z);
    }
    static_cast<T*>(p.delta.o)[token * p.delta.o_token + head * p.delta.o_head + i] = from_float<T>(result);
  }

  const nvidia::PreviewGdnParams& p;
  Shared& s;
  const Sequence sequence;
  const int head, key_head, row, lane8;
};

template <class T>
__device__ __forceinline__ void walk_gdn(const nvidia::PreviewGdnParams& p) {
  __shared__ typename GdnWalk<T>::Shared shared;
  const Sequence sequence =
      find_sequence(p.delta.cu_seqlens, p.delta.initial, blockIdx.z, p.delta.tokens, p.delta.slots);
  if (sequence.length > p.above) GdnWalk<T>(p, sequence, shared).run();
}

}  // namespace
}  // namespace clover::delta

#define CLOVER_GDN_WALK(tag, T)                                                                        \
  extern "C" __global__ void __launch_bounds__(clover::nvidia::preview_gdn_detail::kWalkThreads)       \
      clover_preview_gdn_walk_##tag(const __grid_constant__ clover::nvidia::PreviewGdnParams params) { \
    clover::delta::walk_gdn<T>(params);                                                                \
  }
CLOVER_GDN_WALK(bf16, __nv_bfloat16)
CLOVER_GDN_WALK(fp16, __half)
