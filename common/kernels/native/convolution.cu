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

// Calls body(sequence, slot, t, whether the token before was of this sequence too) for the present ones of some tokens.
template <class Body>
__device__ __forceinline__ void for_each_token(const ConvParams& p, int64_t first, int count, const Body& body) {
  int64_t previous = -1;
  Sequence sequence{0, 0, false};
  for (int64_t t = first; t < first + count && t < p.tokens; ++t) {
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
    for_each_token(p, group * p.run, p.run, [&](const Sequence& sequence, int64_t slot, int64_t t, bool) {
      convolve_one<T, Y>(p, sequence, slot, t, channel);
    });
  }
}

// What kConvGroup channels are multiplied by.
struct Taps {
  float weight[kConvGroup * kConvTaps], bias[kConvGroup];
};

// One token's output from the inputs of the last kConvTaps tokens, oldest first.
template <bool kWithSilu, class Y>
__device__ __forceinline__ void store_output(const Taps& taps, const float (&z0)[kConvGroup],
                                             const float (&z1)[kConvGroup], const float (&z2)[kConvGroup],
                                             const float (&z3)[kConvGroup], Y* y) {
  float out[kConvGroup];
#pragma unroll
  for (int c = 0; c < kConvGroup; ++c) {
    const float* weight = taps.weight + c * kConvTaps;
    const float sum = taps.bias[c] + weight[0] * z0[c] + weight[1] * z1[c] + weight[2] * z2[c] + weight[3] * z3[c];
    out[c] = kWithSilu ? silu(sum) : sum;
  }
  store_floats(y, out);
}

// Whether these tokens and the inputs before them belong to one present sequence.
__device__ __forceinline__ bool run_is_inside(const ConvParams& p, int64_t first, int count) {
  const int64_t n = sequence_of(p.cu_seqlens, p.sequences, first);
  if (n < 0) return false;
  const Sequence sequence = conv_sequence(p, n);
  return sequence.present && sequence.begin + kConvTaps - 1 <= first &&
         first + count <= sequence.begin + sequence.length;
}

// The common case, tokens inside a sequence: the inputs of kConvAhead of them are on their way, the first before it is
// known whether this is such a case. False where it is not. `count` is a multiple of kConvAhead.
template <class T, class Y, bool kWithSilu>
__device__ __forceinline__ bool convolve_run(const ConvParams& p, const Taps& taps, int64_t first, int count,
                                             int64_t channel) {
  static_assert(kConvTokens % kConvAhead == 0 && kConvAhead % kConvTaps == 0, "no rest");
  constexpr int kBefore = kConvTaps - 1;
  if (first < kBefore || first + count > p.tokens) return false;
  const T* x = static_cast<const T*>(p.x) + (first - kBefore) * p.x_token + channel;
  float z[kConvTaps][kConvGroup];
#pragma unroll
  for (int i = 0; i < kBefore; ++i, x += p.x_token) load_floats(x, z[i]);
  Raw<T, kConvGroup> next[kConvAhead];
#pragma unroll
  for (int i = 0; i < kConvAhead; ++i, x += p.x_token) next[i].load(x);
  if (!run_is_inside(p, first, count)) return false;
  Y* y = static_cast<Y*>(p.y) + first * p.y_token + channel;
#pragma unroll 1
  for (int step = 0; step < count; step += kConvAhead) {
    const bool more = step + kConvAhead < count;
#pragma unroll
    for (int i = 0; i < kConvAhead; ++i, x += p.x_token, y += p.y_token) {
      next[i].to_floats(z[(i + kBefore) % kConvTaps]);
      if (more) next[i].load(x);
      store_output<kWithSilu>(taps, z[i % kConvTaps], z[(i + 1) % kConvTaps], z[(i + 2) % kConvTaps],
                              z[(i + 3) % kConvTaps], y);
    }
  }
  return true;
}

// Any tokens, one by one; the inputs of those before stay in registers. A sequence's first ones are convolve_head's.
template <class T, class Y, bool kWithSilu>
__device__ __forceinline__ void convolve_steps(const ConvParams& p, const Taps& taps, int64_t first, int count,
                                               int64_t channel) {
  constexpr int kBefore = kConvTaps - 1;
  float window[kConvTaps][kConvGroup];
  for_each_token(p, first, count, [&](const Sequence& sequence, int64_t, int64_t t, bool goes_on) {
    if (t < kBefore) return;
    const T* x = static_cast<const T*>(p.x) + (sequence.begin + t) * p.x_token + channel;
#pragma unroll
    for (int j = 0; j < kBefore; ++j) {
      if (goes_on && t > kBefore) {
#pragma unroll
        for (int c = 0; c < kConvGroup; ++c) window[j][c] = window[j + 1][c];
      } else {
        load_floats(x - (kBefore - j) * p.x_token, window[j]);
      }
    }
    load_floats(x, window[kBefore]);
    store_output<kWithSilu>(taps, window[0], window[1], window[2], window[3],
                            static_cast<Y*>(p.y) + (sequence.begin + t) * p.y_token + channel);
  });
}

// The tokens of sequence n that see its past, and then, in a commit, its new past: whoever reads some of a slot is the
// one who writes it.
template <class T, class Y, bool kWithSilu>
__device__ __forceinline__ void convolve_head(const ConvParams& p, const Taps& taps, int64_t n, int64_t channel) {
  constexpr int kBefore = kConvTaps - 1;
  const Sequence sequence = conv_sequence(p, n);
  if (!sequence.present) return;
  const int64_t from = p.initial[n], to = p.final == nullptr ? -1 : p.final[n];
  T past[kBefore][kConvGroup];
#pragma unroll
  for (int i = 0; i < kBefore; ++i) {
#pragma unroll
    for (int c = 0; c < kConvGroup; ++c) {
      past[i][c] = T{};
      if (from >= 0)
        past[i][c] = static_cast<const T*>(p.state)[from * p.state_slot + (channel + c) * p.state_channel + i];
    }
  }
  float z[2 * kBefore][kConvGroup];
  const T* x = static_cast<const T*>(p.x) + sequence.begin * p.x_token + channel;
#pragma unroll
  for (int i = 0; i < kBefore; ++i) {
#pragma unroll
    for (int c = 0; c < kConvGroup; ++c) z[i][c] = to_float(past[i][c]);
    if (i < sequence.length) load_floats(x + i * p.x_token, z[kBefore + i]);
  }
#pragma unroll
  for (int t = 0; t < kBefore; ++t) {
    const int64_t token = sequence.begin + t;
    if (t < sequence.length && sequence_of(p.cu_seqlens, p.sequences, token) == n)
      store_output<kWithSilu>(taps, z[t], z[t + 1], z[t + 2], z[t + 3],
                              static_cast<Y*>(p.y) + token * p.y_token + channel);
  }
  if (to < 0 || (sequence.length == 0 && from == to)) return;
  T* next = static_cast<T*>(p.state) + to * p.state_slot + channel * p.state_channel;
#pragma unroll
  for (int i = 0; i < kBefore; ++i) {
    const int64_t source = sequence.length + i - kBefore;
    T values[kConvGroup] = {};
    if (source >= 0) {
      load_elements(x + source * p.x_token, values);
    } else {
#pragma unroll
      for (int j = 0; j < kBefore; ++j) {
        if (j != source + kBefore) continue;
#pragma unroll
        for (int c = 0; c < kConvGroup; ++c) values[c] = past[j][c];
      }
    }
#pragma unroll
    for (int c = 0; c < kConvGroup; ++c) next[c * p.state_channel + i] = values[c];
  }
}

// A run of tokens. Where a sequence begins or ends inside it, kConvAhead tokens at a time, and one by one where that
// is.
template <class T, class Y, bool kWithSilu>
__device__ __forceinline__ void convolve_tokens(const ConvParams& p, const Taps& taps, int64_t run, int64_t channel) {
  int count = p.run;
  for (int64_t first = run * p.run, end = first + p.run; first < end;) {
    if (count < kConvAhead || !convolve_run<T, Y, kWithSilu>(p, taps, first, count, channel)) {
      if (count > kConvAhead) {
        count = kConvAhead;
        continue;
      }
      convolve_steps<T, Y, kWithSilu>(p, taps, first, count, channel);
    }
    first += count;
  }
}

// kConvTaps taps and kConvGroup channels at once. The first blocks compute the heads of sequences, the others runs.
template <class T, class Y, bool kWithSilu>
__device__ __forceinline__ void convolve_groups(const ConvParams& p) {
  static_assert(kConvTaps == 4, "store_output names each tap");
  const int64_t columns = p.channels / kConvGroup, heads = p.sequences * columns;
  const int64_t head_blocks = quotient(heads + kBlockThreads - 1, kBlockThreads);
  const int64_t count = quotient(p.tokens + p.run - 1, p.run) * columns;
  for (int64_t block = blockIdx.x; block * kBlockThreads < head_blocks * kBlockThreads + count; block += gridDim.x) {
    const bool is_head = block < head_blocks;
    const int64_t item = (is_head ? block : block - head_blocks) * kBlockThreads + threadIdx.x;
    if (item >= (is_head ? heads : count)) continue;
    int64_t row = quotient(item, columns), column = item - row * columns;
    if (!is_head && p.tiled) {
      const int64_t tile = item / kBlockThreads, tiles = columns / kConvColumns, first = quotient(tile, tiles);
      row = first * (kBlockThreads / kConvColumns) + threadIdx.x / kConvColumns;
      column = (tile - first * tiles) * kConvColumns + threadIdx.x % kConvColumns;
    }
    const int64_t channel = column * kConvGroup;
    Taps taps;
    load_floats(static_cast<const T*>(p.weight) + channel * kConvTaps, taps.weight);
#pragma unroll
    for (int c = 0; c < kConvGroup; ++c) taps.bias[c] = 0.0f;
    if (p.bias != nullptr) load_floats(static_cast<const T*>(p.bias) + channel, taps.bias);
    if (is_head) {
      convolve_head<T, Y, kWithSilu>(p, taps, row, channel);
    } else {
      convolve_tokens<T, Y, kWithSilu>(p, taps, row, channel);
    }
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

#define CLOVER_CONVOLUTION(tag, T)                                                                                 \
  CLOVER_KERNEL(clover_portable_conv_##tag, clover::native::ConvParams) {                                          \
    clover::native::convolve<T, T>(params);                                                                        \
  }                                                                                                                \
  CLOVER_KERNEL_RESIDENT(clover_portable_conv_x4_##tag, clover::native::ConvParams, clover::native::kConvBlocks) { \
    if (params.with_silu)                                                                                          \
      clover::native::convolve_groups<T, T, true>(params);                                                         \
    else                                                                                                           \
      clover::native::convolve_groups<T, T, false>(params);                                                        \
  }                                                                                                                \
  CLOVER_KERNEL(clover_portable_conv_to_f32_##tag, clover::native::ConvParams) {                                   \
    clover::native::convolve<T, float>(params);                                                                    \
  }                                                                                                                \
  CLOVER_KERNEL_RESIDENT(clover_portable_conv_to_f32_x4_##tag, clover::native::ConvParams,                         \
                         clover::native::kConvBlocks) {                                                            \
    if (params.with_silu)                                                                                          \
      clover::native::convolve_groups<T, float, true>(params);                                                     \
    else                                                                                                           \
      clover::native::convolve_groups<T, float, false>(params);                                                    \
  }                                                                                                                \
  CLOVER_KERNEL(clover_portable_conv_state_##tag, clover::native::ConvParams) {                                    \
    clover::native::remember<T>(params);                                                                           \
  }
CLOVER_FOR_EACH_TYPE(CLOVER_CONVOLUTION)
