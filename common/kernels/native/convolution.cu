// causal_conv1d and preview_conv1d.
#include "convolution.h"
#include "portable.cuh"

namespace clover::native {
namespace {

// Sequence n of the call; a slot outside the pool makes it absent.
__device__ __forceinline__ Sequence conv_sequence(const ConvParams& p, int64_t n) {
  Sequence sequence = sequence_at(p.cu_seqlens, n, p.tokens);
  if (p.initial[n] >= p.slots || (p.final != nullptr && p.final[n] >= p.slots)) sequence.present = false;
  return sequence;
}

// The input of some channels, `back` tokens before token t of the sequence; from the slot where that is before its
// start.
template <class T, int kGroup>
__device__ __forceinline__ void load_input(const ConvParams& p, const Sequence& sequence, int64_t slot, int64_t t,
                                           int64_t back, int64_t channel, float (&z)[kGroup]) {
  const int64_t source = t - back;
  if (source >= 0) {
    load_floats(static_cast<const T*>(p.x) + (sequence.begin + source) * p.x_token + channel, z);
    return;
  }
#pragma unroll
  for (int c = 0; c < kGroup; ++c) {
    const int64_t offset = slot * p.state_slot + (channel + c) * p.state_channel + source + p.taps - 1;
    z[c] = slot < 0 ? 0.0f : to_float(static_cast<const T*>(p.state)[offset]);
  }
}

// One token, any number of taps.
template <class T, class Y>
__device__ __forceinline__ void convolve_one(const ConvParams& p, const Sequence& sequence, int64_t slot, int64_t t,
                                             int64_t channel) {
  float sum = p.bias == nullptr ? 0.0f : to_float(static_cast<const T*>(p.bias)[channel]);
  const T* weight = static_cast<const T*>(p.weight) + channel * p.weight_channel;
  for (int64_t j = 0; j < p.taps; ++j) {
    float z[1];
    load_input<T>(p, sequence, slot, t, p.taps - 1 - j, channel, z);
    sum += to_float(weight[j]) * z[0];
  }
  Y* y = static_cast<Y*>(p.y) + (sequence.begin + t) * p.y_token + channel;
  *y = from_float<Y>(p.with_silu ? silu(sum) : sum);
}

// Calls body(sequence, slot, t, whether the token before was of this sequence too) for the present tokens of a run.
template <class Body>
__device__ __forceinline__ void for_each_token(const ConvParams& p, int64_t first, const Body& body) {
  int64_t previous = -1;
  Sequence sequence{0, 0, false};
  for (int64_t t = first; t < first + p.run && t < p.tokens; ++t) {
    const bool inside = previous >= 0 && t < sequence.begin + sequence.length;
    const int64_t n = inside ? previous : sequence_of(p.cu_seqlens, p.sequences, t);
    if (n >= 0 && n != previous) sequence = conv_sequence(p, n);
    if (n >= 0 && sequence.present) body(sequence, p.initial[n], t - sequence.begin, n == previous);
    previous = n;
  }
}

template <class T, class Y>
__device__ __forceinline__ void convolve(const ConvParams& p) {
  const int64_t count = quotient(p.tokens + p.run - 1, p.run) * p.channels;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t group = quotient(item, p.channels), channel = item - group * p.channels;
    for_each_token(p, group * p.run, [&](const Sequence& sequence, int64_t slot, int64_t t, bool) {
      convolve_one<T, Y>(p, sequence, slot, t, channel);
    });
  }
}

// What kConvGroup channels are multiplied by.
struct Taps {
  float weight[kConvGroup * kConvTaps], bias[kConvGroup];
};

// One token's output from the inputs of the last kConvTaps tokens, oldest first.
template <class Y>
__device__ __forceinline__ void store_output(const ConvParams& p, const Taps& taps, const float (&z0)[kConvGroup],
                                             const float (&z1)[kConvGroup], const float (&z2)[kConvGroup],
                                             const float (&z3)[kConvGroup], int64_t token, int64_t channel) {
  float out[kConvGroup];
#pragma unroll
  for (int c = 0; c < kConvGroup; ++c) {
    const float* weight = taps.weight + c * kConvTaps;
    const float sum = taps.bias[c] + weight[0] * z0[c] + weight[1] * z1[c] + weight[2] * z2[c] + weight[3] * z3[c];
    out[c] = p.with_silu ? silu(sum) : sum;
  }
  store_floats(static_cast<Y*>(p.y) + token * p.y_token + channel, out);
}

// Whether a full run and the inputs before it belong to one present sequence.
__device__ __forceinline__ bool run_is_inside(const ConvParams& p, int64_t first) {
  const int64_t n = sequence_of(p.cu_seqlens, p.sequences, first);
  if (n < 0) return false;
  const Sequence sequence = conv_sequence(p, n);
  return sequence.present && sequence.begin + kConvTaps - 1 <= first &&
         first + kConvTokens <= sequence.begin + sequence.length;
}

// The common case of a long sequence: all inputs are asked for at once, and before it is known whether this is one.
// False where it is not.
template <class T, class Y>
__device__ __forceinline__ bool convolve_run(const ConvParams& p, const Taps& taps, int64_t first, int64_t channel) {
  constexpr int kInputs = kConvTokens + kConvTaps - 1;
  if (p.run != kConvTokens || first < kConvTaps - 1 || first + kConvTokens > p.tokens) return false;
  T raw[kInputs][kConvGroup];
  const T* x = static_cast<const T*>(p.x) + (first - (kConvTaps - 1)) * p.x_token + channel;
#pragma unroll
  for (int i = 0; i < kInputs; ++i) load_elements(x + i * p.x_token, raw[i]);
  if (!run_is_inside(p, first)) return false;
  float z[kInputs][kConvGroup];
#pragma unroll
  for (int i = 0; i < kInputs; ++i) {
#pragma unroll
    for (int c = 0; c < kConvGroup; ++c) z[i][c] = to_float(raw[i][c]);
  }
#pragma unroll
  for (int t = 0; t < kConvTokens; ++t)
    store_output<Y>(p, taps, z[t], z[t + 1], z[t + 2], z[t + 3], first + t, channel);
  return true;
}

// Any run, token by token; the inputs of the tokens before stay in registers.
template <class T, class Y>
__device__ __forceinline__ void convolve_steps(const ConvParams& p, const Taps& taps, int64_t first, int64_t channel) {
  float window[kConvTaps][kConvGroup];
  for_each_token(p, first, [&](const Sequence& sequence, int64_t slot, int64_t t, bool goes_on) {
#pragma unroll
    for (int j = 0; j + 1 < kConvTaps; ++j) {
      if (goes_on) {
#pragma unroll
        for (int c = 0; c < kConvGroup; ++c) window[j][c] = window[j + 1][c];
      } else {
        load_input<T>(p, sequence, slot, t, kConvTaps - 1 - j, channel, window[j]);
      }
    }
    load_input<T>(p, sequence, slot, t, 0, channel, window[kConvTaps - 1]);
    store_output<Y>(p, taps, window[0], window[1], window[2], window[3], sequence.begin + t, channel);
  });
}

// kConvTaps taps and kConvGroup channels at once.
template <class T, class Y>
__device__ __forceinline__ void convolve_groups(const ConvParams& p) {
  static_assert(kConvTaps == 4, "store_output names each tap");
  const int64_t channel_groups = p.channels / kConvGroup;
  const int64_t count = quotient(p.tokens + p.run - 1, p.run) * channel_groups;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    int64_t group = quotient(item, channel_groups), column = item - group * channel_groups;
    if (p.tiled) {
      const int64_t block = item / kBlockThreads, tiles = channel_groups / kConvColumns, row = quotient(block, tiles);
      group = row * (kBlockThreads / kConvColumns) + threadIdx.x / kConvColumns;
      column = (block - row * tiles) * kConvColumns + threadIdx.x % kConvColumns;
    }
    const int64_t channel = column * kConvGroup;
    Taps taps;
    load_floats(static_cast<const T*>(p.weight) + channel * kConvTaps, taps.weight);
#pragma unroll
    for (int c = 0; c < kConvGroup; ++c) taps.bias[c] = 0.0f;
    if (p.bias != nullptr) load_floats(static_cast<const T*>(p.bias) + channel, taps.bias);
    if (!convolve_run<T, Y>(p, taps, group * p.run, channel)) convolve_steps<T, Y>(p, taps, group * p.run, channel);
  }
}

// The last taps - 1 entries of the slot's past followed by the sequence. Ascending order makes it right in place.
template <class T>
__device__ __forceinline__ void remember(const ConvParams& p) {
  const int64_t count = p.sequences * p.channels;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t n = quotient(item, p.channels), channel = item - n * p.channels;
    const Sequence sequence = conv_sequence(p, n);
    const int64_t from = p.initial[n], to = p.final[n];
    if (!sequence.present || to < 0 || (sequence.length == 0 && from == to)) continue;
    T* pool = static_cast<T*>(p.state);
    const T* past = pool + (from < 0 ? 0 : from) * p.state_slot + channel * p.state_channel;
    T* next = pool + to * p.state_slot + channel * p.state_channel;
    for (int64_t i = 0; i + 1 < p.taps; ++i) {
      const int64_t source = sequence.length + i - (p.taps - 1);
      if (source >= 0) {
        next[i] = static_cast<const T*>(p.x)[(sequence.begin + source) * p.x_token + channel];
      } else {
        next[i] = from < 0 ? T{} : past[sequence.length + i];
      }
    }
  }
}

}  // namespace
}  // namespace clover::native

#define CLOVER_CONVOLUTION(tag, T)                                                  \
  CLOVER_KERNEL(clover_portable_conv_##tag, clover::native::ConvParams) {           \
    clover::native::convolve<T, T>(params);                                         \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_conv_x8_##tag, clover::native::ConvParams) {        \
    clover::native::convolve_groups<T, T>(params);                                  \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_conv_to_f32_##tag, clover::native::ConvParams) {    \
    clover::native::convolve<T, float>(params);                                     \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_conv_to_f32_x8_##tag, clover::native::ConvParams) { \
    clover::native::convolve_groups<T, float>(params);                              \
  }                                                                                 \
  CLOVER_KERNEL(clover_portable_conv_state_##tag, clover::native::ConvParams) {     \
    clover::native::remember<T>(params);                                            \
  }
CLOVER_FOR_EACH_TYPE(CLOVER_CONVOLUTION)
