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

// Calls body(sequence, slot, t, whether the token before was of this sequence too) for the present tokens among
// kConvTokens.
template <class Body>
__device__ __forceinline__ void for_each_token(const ConvParams& p, int64_t first, const Body& body) {
  int64_t previous = -1;
  Sequence sequence{0, 0, false};
  for (int64_t t = first; t < first + kConvTokens && t < p.tokens; ++t) {
    const bool inside = previous >= 0 && t < sequence.begin + sequence.length;
    const int64_t n = inside ? previous : sequence_of(p.cu_seqlens, p.sequences, t);
    if (n >= 0 && n != previous) sequence = conv_sequence(p, n);
    if (n >= 0 && sequence.present) body(sequence, p.initial[n], t - sequence.begin, n == previous);
    previous = n;
  }
}

template <class T, class Y>
__device__ __forceinline__ void convolve(const ConvParams& p) {
  const int64_t count = ((p.tokens + kConvTokens - 1) / kConvTokens) * p.channels;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t group = item / p.channels, channel = item - group * p.channels;
    for_each_token(p, group * kConvTokens, [&](const Sequence& sequence, int64_t slot, int64_t t, bool) {
      convolve_one<T, Y>(p, sequence, slot, t, channel);
    });
  }
}

// kConvTaps taps and kConvGroup channels at once; the inputs of the tokens before stay in registers.
template <class T, class Y>
__device__ __forceinline__ void convolve_groups(const ConvParams& p) {
  const int64_t channel_groups = p.channels / kConvGroup;
  const int64_t count = ((p.tokens + kConvTokens - 1) / kConvTokens) * channel_groups;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t group = item / channel_groups, channel = (item - group * channel_groups) * kConvGroup;
    float weight[kConvGroup * kConvTaps], bias[kConvGroup], window[kConvTaps][kConvGroup];
    load_floats(static_cast<const T*>(p.weight) + channel * kConvTaps, weight);
#pragma unroll
    for (int c = 0; c < kConvGroup; ++c) bias[c] = 0.0f;
    if (p.bias != nullptr) load_floats(static_cast<const T*>(p.bias) + channel, bias);
    for_each_token(p, group * kConvTokens, [&](const Sequence& sequence, int64_t slot, int64_t t, bool goes_on) {
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
      float out[kConvGroup];
#pragma unroll
      for (int c = 0; c < kConvGroup; ++c) {
        float sum = bias[c];
#pragma unroll
        for (int j = 0; j < kConvTaps; ++j) sum += weight[c * kConvTaps + j] * window[j][c];
        out[c] = p.with_silu ? silu(sum) : sum;
      }
      store_floats(static_cast<Y*>(p.y) + (sequence.begin + t) * p.y_token + channel, out);
    });
  }
}

// The last taps - 1 entries of the slot's past followed by the sequence. Ascending order makes it right in place.
template <class T>
__device__ __forceinline__ void remember(const ConvParams& p) {
  const int64_t count = p.sequences * p.channels;
  for (int64_t item = grid_thread(); item < count; item += grid_threads()) {
    const int64_t n = item / p.channels, channel = item - n * p.channels;
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
