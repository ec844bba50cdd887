// The short causal convolution of a block of channels, token by token.
#pragma once

#include "number.hpp"
#include "view.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

// What a block of channels needs in FP32, laid out tap by tap: rows of `row` floats, padded with zeros.
struct ConvBlock {
  int64_t channels;
  int64_t taps;
  int64_t row;     // a multiple of kLanes
  float* weight;   // [taps, row]
  float* bias;     // [row]
  float* history;  // [taps - 1, row], oldest first

  static int64_t floats(int64_t taps, int64_t row) { return 2 * taps * row; }

  // Places the parts one after another in `memory`.
  ConvBlock(int64_t channels, int64_t taps, int64_t row, float* memory)
      : channels(channels), taps(taps), row(row), weight(memory), bias(memory + taps * row), history(bias + row) {}
};

// `bias` and `state`, the past inputs in the sequence's slot, may be null.
template <class T>
inline void load_conv_block(const ConvBlock& block, const View<const T, 2>& weight, const T* bias, const T* state,
                            int64_t state_stride, int64_t first_channel) {
  for (int64_t c = 0; c < block.row; ++c) {
    const bool inside = c < block.channels;
    const T* taps = inside ? weight.at(first_channel + c) : nullptr;
    for (int64_t j = 0; j < block.taps; ++j) block.weight[j * block.row + c] = inside ? to_float(taps[j]) : 0.0f;
    block.bias[c] = inside && bias != nullptr ? to_float(bias[first_channel + c]) : 0.0f;
    const T* past = inside && state != nullptr ? state + (first_channel + c) * state_stride : nullptr;
    for (int64_t j = 0; j + 1 < block.taps; ++j) {
      block.history[j * block.row + c] = past != nullptr ? to_float(past[j]) : 0.0f;
    }
  }
}

// Token t of the sequence whose first token, at the block's first channel, is `x`; `out` has block.row floats.
template <class T>
inline void convolve_token(const ConvBlock& block, const T* x, int64_t token_stride, int64_t t, bool with_silu,
                           float* out) {
  const int64_t remembered = maximum(0, block.taps - 1 - t);
  for (int64_t c = 0; c < block.row; c += kLanes) {
    const int64_t left = block.channels - c;
    Vec sum = load(block.bias + c);
    for (int64_t j = 0; j < remembered; ++j) {
      sum += load(block.weight + j * block.row + c) * load(block.history + (t + j) * block.row + c);
    }
    for (int64_t j = remembered; j < block.taps; ++j) {
      const T* input = x + (t + j - (block.taps - 1)) * token_stride;
      sum += load(block.weight + j * block.row + c) * load_part(input + c, left);
    }
    store(out + c, with_silu ? silu(sum) : sum);
  }
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
