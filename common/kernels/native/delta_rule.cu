// gated_delta_rule and preview_gated_delta_rule.
#include "delta_rule.h"
#include "portable.cuh"

namespace clover::native {
namespace {

using Row = Team<kDeltaLanes>;

// What a block works on, and its shared memory. kKeys is the key dimension padded with zeros.
template <class T, int kKeys>
struct DeltaBlock {
  static constexpr int kPerLane = kKeys / kDeltaLanes;
  static constexpr int kQuads = kPerLane / 4;  // a lane's keys: four neighbours out of every 4 kDeltaLanes

  const DeltaParams& p;
  Sequence sequence;
  int64_t slot;
  int head;       // value head
  int first_row;  // of the block
  float *q, *k, *v, *decay, *beta, *reads;

  float state[kDeltaRows][kPerLane];

  __device__ __forceinline__ DeltaBlock(const DeltaParams& params, float* shared) : p(params) {
    q = shared;
    k = q + kDeltaChunk * kKeys;
    v = k + kDeltaChunk * kKeys;
    decay = v + kDeltaChunk * kDeltaBlockRows;
    beta = decay + kDeltaChunk;
    reads = beta + kDeltaChunk;
  }

  static __device__ __forceinline__ int key_of(int i) { return (i / 4 * kDeltaLanes + Row::lane()) * 4 + i % 4; }
  __device__ __forceinline__ int team_row() const { return first_row + Row::index() * kDeltaRows; }

  // ---- the state ----

  __device__ __forceinline__ void clear_state() {
#pragma unroll
    for (int r = 0; r < kDeltaRows; ++r) {
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) state[r][i] = 0.0f;
    }
  }

  // Calls body(r, i, where) for each number of the state that this lane holds, `where` being its place in the pool.
  template <class Body>
  __device__ __forceinline__ void for_each_number(int64_t from_slot, const Body& body) {
    float* matrix = p.state + from_slot * p.state_slot + head * p.state_head;
#pragma unroll
    for (int r = 0; r < kDeltaRows; ++r) {
      const int row = team_row() + r;
      if (row >= p.value_dim) continue;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        if (key_of(i) < p.key_dim) body(r, i, matrix + row * p.state_v + key_of(i) * p.state_k);
      }
    }
  }

  // A lane's four neighbours at once, in a pool whose rows allow it.
  __device__ __forceinline__ bool in_quads() const {
    return p.state_k == 1 && p.key_dim % 4 == 0 && p.state_v % 4 == 0 && p.state_head % 4 == 0 &&
           p.state_slot % 4 == 0 && reinterpret_cast<uint64_t>(p.state) % 16 == 0;
  }

  template <bool kStore>
  __device__ __forceinline__ void move_quads(int64_t pool_slot) {
    float* matrix = p.state + pool_slot * p.state_slot + head * p.state_head;
#pragma unroll
    for (int r = 0; r < kDeltaRows; ++r) {
      const int row = team_row() + r;
      if (row >= p.value_dim) continue;
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        if (key_of(4 * quad) >= p.key_dim) continue;
        float4* place = reinterpret_cast<float4*>(matrix + row * p.state_v + key_of(4 * quad));
        float* own = &state[r][4 * quad];
        if (kStore) {
          *place = float4{own[0], own[1], own[2], own[3]};
        } else {
          const float4 value = *place;
          own[0] = value.x, own[1] = value.y, own[2] = value.z, own[3] = value.w;
        }
      }
    }
  }

  __device__ __forceinline__ void load_state() {
    clear_state();
    if (slot < 0) return;
    if (in_quads()) return move_quads<false>(slot);
    for_each_number(slot, [&](int r, int i, float* where) { state[r][i] = *where; });
  }

  __device__ __forceinline__ void store_state(int64_t to_slot) {
    if (in_quads()) return move_quads<true>(to_slot);
    for_each_number(to_slot, [&](int r, int i, float* where) { *where = state[r][i]; });
  }

  // ---- a chunk's operands ----

  // One token's query or key by one team: normalised, and padded with zeros.
  __device__ __forceinline__ void load_vector(const T* from, bool exists, float* to) const {
    float values[kPerLane];
    double squares = 0.0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      values[i] = exists && key_of(i) < p.key_dim ? to_float(from[key_of(i)]) : 0.0f;
      squares += static_cast<double>(values[i]) * values[i];
    }
    const double factor = p.l2norm ? 1.0 / sqrt(Row::sum(squares) + 1e-6) : 1.0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) to[key_of(i)] = scaled(values[i], factor);
  }

  // Tokens [first, first + count) of the sequence.
  __device__ __forceinline__ void load_chunk(int64_t first, int count) {
    __syncthreads();  // the chunk before may still be in use
    const int own = Row::index();
    const bool exists = own < count;
    const int64_t t = sequence.begin + first + (exists ? own : 0);
    const int key_head = head / (p.value_heads / p.heads);
    load_vector(static_cast<const T*>(p.q) + t * p.q_token + key_head * p.q_head, exists, q + own * kKeys);
    load_vector(static_cast<const T*>(p.k) + t * p.k_token + key_head * p.k_head, exists, k + own * kKeys);
    const T* values = static_cast<const T*>(p.v) + t * p.v_token + head * p.v_head;
    for (int r = Row::lane(); r < kDeltaBlockRows; r += kDeltaLanes) {
      const bool inside = exists && first_row + r < p.value_dim;
      v[own * kDeltaBlockRows + r] = inside ? to_float(values[first_row + r]) : 0.0f;
    }
    if (Row::lane() == 0) {
      decay[own] = exists ? expf(p.g[t * p.g_token + head]) : 0.0f;
      beta[own] = exists ? p.beta[t * p.beta_token + head] : 0.0f;
    }
    __syncthreads();
  }

  // ---- the recurrence ----

  // The products of the team's rows with a vector in shared memory, in every lane.
  __device__ __forceinline__ void multiply(const float* vector, float (&dots)[kDeltaRows]) const {
    float own[kPerLane];
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      const float4 value = *reinterpret_cast<const float4*>(vector + key_of(4 * quad));
      own[4 * quad] = value.x, own[4 * quad + 1] = value.y, own[4 * quad + 2] = value.z, own[4 * quad + 3] = value.w;
    }
#pragma unroll
    for (int r = 0; r < kDeltaRows; ++r) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) sum += state[r][i] * own[i];
      dots[r] = sum;
    }
    Row::sum_each(dots);
  }

  __device__ __forceinline__ void advance(int token) {
    const float* key = k + token * kKeys;
    const float factor = decay[token];
#pragma unroll
    for (int r = 0; r < kDeltaRows; ++r) {
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) state[r][i] *= factor;
    }
    float dots[kDeltaRows];
    multiply(key, dots);
#pragma unroll
    for (int r = 0; r < kDeltaRows; ++r) {
      const float u = beta[token] * (v[token * kDeltaBlockRows + Row::index() * kDeltaRows + r] - dots[r]);
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) state[r][i] += u * key[key_of(i)];
    }
  }

  // The read of a token by the current state: lane r of the team gets row r's, others whatever.
  __device__ __forceinline__ float read(int token) const {
    float dots[kDeltaRows];
    multiply(q + token * kKeys, dots);
    float own = dots[0];
#pragma unroll
    for (int r = 1; r < kDeltaRows; ++r) own = Row::lane() == r ? dots[r] : own;
    return own;
  }

  __device__ __forceinline__ bool owns_read() const {
    return Row::lane() < kDeltaRows && team_row() + Row::lane() < p.value_dim;
  }

  __device__ __forceinline__ void write(int64_t t, float value) const {
    if (!owns_read()) return;
    T* o = static_cast<T*>(p.o) + (sequence.begin + t) * p.o_token + head * p.o_head + team_row() + Row::lane();
    *o = from_float<T>(p.scale * value);
  }

  // Where the forward read of token t is kept until the backward one is there.
  __device__ __forceinline__ float* kept_read(int64_t t) const {
    if (sequence.length <= kSharedReads) return reads + t * kDeltaBlockRows + Row::index() * kDeltaRows + Row::lane();
    return p.reads + ((sequence.begin + t) * p.value_heads + head) * p.value_dim + team_row() + Row::lane();
  }

  // Calls body(token of the chunk, t) for the tokens in ascending order.
  template <class Body>
  __device__ __forceinline__ void forwards(const Body& body) {
    for (int64_t first = 0; first < sequence.length; first += kDeltaChunk) {
      const int count = static_cast<int>(sequence.length - first < kDeltaChunk ? sequence.length - first : kDeltaChunk);
      load_chunk(first, count);
      for (int token = 0; token < count; ++token) body(token, first + token);
    }
  }

  template <class Body>
  __device__ __forceinline__ void backwards(const Body& body) {
    for (int64_t end = sequence.length; end > 0;) {
      const int64_t first = (end - 1) / kDeltaChunk * kDeltaChunk;
      load_chunk(first, static_cast<int>(end - first));
      for (int token = static_cast<int>(end - first) - 1; token >= 0; --token) body(token, first + token);
      end = first;
    }
  }

  __device__ __forceinline__ void run() {
    load_state();
    if (p.mode == DeltaMode::kBlock) {
      forwards([&](int token, int64_t) { advance(token); });
      forwards([&](int token, int64_t t) { write(t, read(token)); });
      return;
    }
    const bool both_ways = p.mode == DeltaMode::kBidirectional;
    forwards([&](int token, int64_t t) {
      advance(token);
      const float value = read(token);
      if (!both_ways) {
        write(t, value);
      } else if (owns_read()) {
        *kept_read(t) = value;
      }
    });
    if (!both_ways) return;
    clear_state();
    backwards([&](int token, int64_t t) {
      const float value = read(token);
      if (owns_read()) write(t, *kept_read(t) + value);
      advance(token);
    });
  }
};

template <class T, int kKeys>
__device__ __forceinline__ void run_delta_rule(const DeltaParams& p) {
  CLOVER_DYNAMIC_SHARED(shared);
  DeltaBlock<T, kKeys> block(p, reinterpret_cast<float*>(shared));
  const int tiles = (p.value_dim + kDeltaBlockRows - 1) / kDeltaBlockRows;
  const int64_t n = blockIdx.x / (static_cast<int64_t>(p.value_heads) * tiles);
  const int part = static_cast<int>(blockIdx.x - n * p.value_heads * tiles);
  block.head = part / tiles;
  block.first_row = part % tiles * kDeltaBlockRows;
  block.sequence = sequence_at(p.cu_seqlens, n, p.tokens);
  block.slot = p.initial[n];
  if (!block.sequence.present || block.slot >= p.slots) return;
  const bool commits = p.mode == DeltaMode::kCommit;
  const int64_t to = commits ? p.final[n] : -1;
  if (to >= p.slots) return;
  if (!commits && block.sequence.length == 0) return;
  block.run();
  if (to >= 0 && (block.sequence.length > 0 || to != block.slot)) block.store_state(to);
}

}  // namespace
}  // namespace clover::native

#define CLOVER_DELTA(tag, T)                                                    \
  CLOVER_KERNEL(clover_portable_delta_64_##tag, clover::native::DeltaParams) {  \
    clover::native::run_delta_rule<T, 64>(params);                              \
  }                                                                             \
  CLOVER_KERNEL(clover_portable_delta_128_##tag, clover::native::DeltaParams) { \
    clover::native::run_delta_rule<T, 128>(params);                             \
  }                                                                             \
  CLOVER_KERNEL(clover_portable_delta_256_##tag, clover::native::DeltaParams) { \
    clover::native::run_delta_rule<T, 256>(params);                             \
  }
CLOVER_FOR_EACH_TYPE(CLOVER_DELTA)
