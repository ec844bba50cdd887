// Dot products of a few weight rows with a few FP32 rows: the tile that matrix products are made of.
#pragma once

#include "number.hpp"
#include "view.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

constexpr int kTileRows = 4;                       // weight rows of a tile
constexpr int kTileTokens = kLanes >= 16 ? 4 : 2;  // FP32 rows of a tile: as many as the registers allow sums for
constexpr int64_t kDotChunk = 1024;                // longer sums are sums of sums, so that errors stay small

// sums[m][r] = weights[r] . x[m]. The x rows are padded with zeros to whole vectors.
template <int tokens, class T>
[[gnu::noinline]] void dot_tile(const T* const (&weights)[kTileRows], const float* const (&x)[tokens], int64_t size,
                                float (&sums)[tokens][kTileRows]) {
  for (int m = 0; m < tokens; ++m) {
    for (int r = 0; r < kTileRows; ++r) sums[m][r] = 0.0f;
  }
  for (int64_t begin = 0; begin < size; begin += kDotChunk) {
    const int64_t end = minimum(begin + kDotChunk, size);
    Vec partial[tokens][kTileRows] = {};
    const auto add = [&](const Vec(&w)[kTileRows], int64_t i) {
#pragma GCC unroll 4
      for (int m = 0; m < tokens; ++m) {
        const Vec value = load(x[m] + i);
#pragma GCC unroll 4
        for (int r = 0; r < kTileRows; ++r) partial[m][r] += w[r] * value;
      }
    };
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      add({load(weights[0] + i), load(weights[1] + i), load(weights[2] + i), load(weights[3] + i)}, i);
    }
    if (i < end) {
      const int64_t left = end - i;
      add({load_part(weights[0] + i, left), load_part(weights[1] + i, left), load_part(weights[2] + i, left),
           load_part(weights[3] + i, left)},
          i);
    }
    for (int m = 0; m < tokens; ++m) {
      float more[kTileRows];
      sum_lanes(partial[m], more);
      for (int r = 0; r < kTileRows; ++r) sums[m][r] += more[r];
    }
  }
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
