// The gated delta rule for the value rows of one head. A row of the state, K numbers, follows its own recurrence, so
// any rows may be computed apart from the others.
#pragma once

#include "number.hpp"
#include "view.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

constexpr int64_t kDeltaRows = kLanes < 8 ? 8 : kLanes;  // rows come in groups of so many, which are whole vectors
constexpr int64_t kChunkTokens = 32;                     // tokens whose operands are held in FP32 at a time

inline int64_t padded_row(int64_t size) {
  return round_up(size, kLanes);
}
inline int64_t padded_rows(int64_t rows) {
  return round_up(rows, kDeltaRows);
}

// Scratch of one thread, in floats: a state of `rows` rows and a chunk's operands.
struct DeltaScratch {
  int64_t row;     // floats of a row of the state, of a query and of a key: K padded with zeros
  int64_t values;  // floats of a token's values and outputs: the rows, padded with zeros
  float* state;    // [values, row]
  float* q;        // [kChunkTokens, row]
  float* k;        // [kChunkTokens, row]
  float* v;        // [kChunkTokens, values]
  float* decay;    // [kChunkTokens]
  float* beta;     // [kChunkTokens]

  static int64_t floats(int64_t K, int64_t rows) {
    return padded_rows(rows) * (padded_row(K) + kChunkTokens) + 2 * kChunkTokens * (padded_row(K) + 1);
  }

  DeltaScratch(int64_t K, int64_t rows, float* memory) : row(padded_row(K)), values(padded_rows(rows)) {
    state = memory;
    q = state + values * row;
    k = q + kChunkTokens * row;
    v = k + kChunkTokens * row;
    decay = v + kChunkTokens * values;
    beta = decay + kChunkTokens;
  }
};

// A state's matrix of one slot and head within the pool.
struct StateMatrix {
  float* data;
  int64_t value_stride;
  int64_t key_stride;
};

// Rows [first, first + rows) of the matrix into the scratch; zeros when `matrix` is null.
void load_state(const DeltaScratch& scratch, const StateMatrix* matrix, int64_t first, int64_t rows, int64_t K);
void store_state(const DeltaScratch& scratch, const StateMatrix& matrix, int64_t first, int64_t rows, int64_t K);

// What happens to a chunk's tokens. Outputs are the reads without the scale: out[t * scratch.values + row].
enum class DeltaStep {
  kAdvanceThenRead,  // ascending tokens; writes `out`
  kReadThenAdvance,  // descending tokens; adds to `out`
  kAdvance,          // ascending tokens; leaves `out`
  kRead,             // writes `out`, leaves the state
};

void run_chunk(const DeltaScratch& scratch, int64_t tokens, DeltaStep step, float* out);

// How a preview reads; the values are the schema's.
enum class PreviewRead { kBidirectional = 0, kBlock = 1, kCausal = 2 };

// Runs a block of `tokens` from the state in the scratch. fill(first token, tokens) puts the operands of some tokens
// into the scratch. `out`, of [tokens, scratch.values], receives the reads.
template <class Fill>
inline void preview_block(const DeltaScratch& scratch, int64_t tokens, PreviewRead read, const Fill& fill, float* out) {
  const auto forwards = [&](DeltaStep step) {
    for (int64_t first = 0; first < tokens; first += kChunkTokens) {
      const int64_t count = minimum(kChunkTokens, tokens - first);
      fill(first, count);
      run_chunk(scratch, count, step, out + first * scratch.values);
    }
  };
  if (read == PreviewRead::kBlock) {
    forwards(DeltaStep::kAdvance);
    forwards(DeltaStep::kRead);
    return;
  }
  forwards(DeltaStep::kAdvanceThenRead);
  if (read == PreviewRead::kCausal) return;

  load_state(scratch, nullptr, 0, 0, 0);
  for (int64_t end = tokens; end > 0;) {
    const int64_t first = (end - 1) / kChunkTokens * kChunkTokens;
    fill(first, end - first);
    run_chunk(scratch, end - first, DeltaStep::kReadThenAdvance, out + first * scratch.values);
    end = first;
  }
}

// Turns `count` logarithms of decays into decays.
inline void exponentiate(float* values, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    store_part(values + i, count - i, exponential(load_part(values + i, count - i)));
  }
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
