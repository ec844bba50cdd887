// gated_delta_rule and preview_gated_delta_rule. A unit of work is a block of value rows of one head of one sequence.
#include "../support/delta.hpp"
#include "../support/norm.hpp"
#include "../support/parallel.hpp"
#include "../support/scratch.hpp"
#include "../support/sequences.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

constexpr int64_t kBlockRows = 32;

// A block of value rows of one head.
struct Block {
  int64_t head;
  int64_t first;
  int64_t rows;
};

template <class T>
struct Operands {
  View<const T, 3> q, k, v;
  View<const float, 2> g, beta;
  View<float, 4> state;
  View<T, 3> o;
  int64_t K, heads_per_key;
  float scale;
  bool l2norm;

  template <class Args, class Dims>
  Operands(const Args& args, const Dims& dims)
      : q(*args.q),
        k(*args.k),
        v(*args.v),
        g(*args.g),
        beta(*args.beta),
        state(*args.state),
        o(*args.o),
        K(dims.K),
        heads_per_key(dims.HV / dims.H),
        scale(static_cast<float>(args.scale)),
        l2norm(args.l2norm != 0) {}

  StateMatrix matrix(int64_t slot, int64_t head) const {
    return {state.at(slot, head), state.strides[2], state.strides[3]};
  }

  void start(const DeltaScratch& scratch, int64_t slot, const Block& block) const {
    if (slot < 0) return load_state(scratch, nullptr, 0, 0, K);
    const StateMatrix initial = matrix(slot, block.head);
    load_state(scratch, &initial, block.first, block.rows, K);
  }

  // The operands of tokens [first, first + count) of the call.
  [[gnu::noinline]] void fill(const DeltaScratch& scratch, const Block& block, int64_t first, int64_t count) const {
    const int64_t key_head = block.head / heads_per_key;
    for (int64_t t = 0; t < count; ++t) {
      fill_row(q.at(first + t, key_head), K, scratch.q + t * scratch.row, scratch.row);
      fill_row(k.at(first + t, key_head), K, scratch.k + t * scratch.row, scratch.row);
      if (l2norm) {
        l2_normalize(scratch.q + t * scratch.row, scratch.row);
        l2_normalize(scratch.k + t * scratch.row, scratch.row);
      }
      const T* values = v.at(first + t, block.head, block.first);
      for (int64_t r = 0; r < scratch.values; ++r) {
        scratch.v[t * scratch.values + r] = r < block.rows ? to_float(values[r]) : 0.0f;
      }
      scratch.decay[t] = *g.at(first + t, block.head);
      scratch.beta[t] = *beta.at(first + t, block.head);
    }
    exponentiate(scratch.decay, count);
  }

  void write(const DeltaScratch& scratch, const Block& block, int64_t first, int64_t count, const float* reads) const {
    for (int64_t t = 0; t < count; ++t) {
      T* out = o.at(first + t, block.head, block.first);
      for (int64_t r = 0; r < block.rows; ++r) out[r] = from_float<T>(scale * reads[t * scratch.values + r]);
    }
  }

 private:
  static void fill_row(const T* from, int64_t size, float* to, int64_t padded) {
    for (int64_t i = 0; i < padded; i += kLanes) store(to + i, load_part(from + i, size - i));
  }
};

// Scratch of one thread: the recurrence's, and the reads of `tokens` tokens.
int64_t scratch_floats(int64_t K, int64_t rows, int64_t tokens) {
  return DeltaScratch::floats(K, rows) + tokens * padded_rows(rows);
}

template <class Dims>
int64_t preview_scratch_floats(const Dims& dims) {
  return scratch_floats(dims.K, minimum(kBlockRows, dims.V), dims.T);
}

template <class Dims>
int64_t commit_scratch_floats(const Dims& dims) {
  return scratch_floats(dims.K, minimum(kBlockRows, dims.V), kChunkTokens);
}

// Calls body(n, sequence, block, scratch, where reads go) for every unit of work.
template <class Dims, class Body>
void for_each_block(const clover_tensor& cu_seqlens_tensor, const Dims& dims, const ThreadScratch& scratch,
                    const Body& body) {
  const View<const int32_t, 1> cu_seqlens(cu_seqlens_tensor);
  const int64_t rows = minimum(kBlockRows, dims.V);
  const int64_t blocks = divide_up(dims.V, rows);
  const int64_t work = rows * dims.K * (1 + average_length(dims.T, dims.N)) / 2;
  parallel_for(dims.N * dims.HV * blocks, work, scratch.workers(), [&](int64_t begin, int64_t end, int worker) {
    const DeltaScratch delta(dims.K, rows, scratch.of(worker));
    float* reads = scratch.of(worker) + DeltaScratch::floats(dims.K, rows);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % blocks * rows;
      const Block block{unit / blocks % dims.HV, first, minimum(rows, dims.V - first)};
      const int64_t n = unit / blocks / dims.HV;
      body(n, sequence_at(cu_seqlens, n), block, delta, reads);
    }
  });
}

template <class T>
void commit(const clover_call& call, const clover_gated_delta_rule_args& args,
            const clover_gated_delta_rule_dims& dims) {
  const Operands<T> operands(args, dims);
  const View<const int32_t, 1> initial(*args.initial_state_indices), final(*args.final_state_indices);
  const ThreadScratch scratch(call, commit_scratch_floats(dims));
  for_each_block(*args.cu_seqlens, dims, scratch,
                 [&](int64_t n, const Sequence& sequence, const Block& block, const DeltaScratch& delta, float* reads) {
                   const int64_t from = *initial.at(n), to = *final.at(n);
                   if (sequence.tokens == 0 && (to < 0 || to == from)) return;
                   operands.start(delta, from, block);
                   for (int64_t first = 0; first < sequence.tokens; first += kChunkTokens) {
                     const int64_t count = minimum(kChunkTokens, sequence.tokens - first);
                     operands.fill(delta, block, sequence.begin + first, count);
                     run_chunk(delta, count, DeltaStep::kAdvanceThenRead, reads);
                     operands.write(delta, block, sequence.begin + first, count, reads);
                   }
                   if (to >= 0) store_state(delta, operands.matrix(to, block.head), block.first, block.rows, dims.K);
                 });
}

template <class T>
void preview(const clover_call& call, const clover_preview_gated_delta_rule_args& args,
             const clover_preview_gated_delta_rule_dims& dims) {
  const Operands<T> operands(args, dims);
  const View<const int32_t, 1> initial(*args.initial_state_indices);
  const ThreadScratch scratch(call, preview_scratch_floats(dims));
  for_each_block(*args.cu_seqlens, dims, scratch,
                 [&](int64_t n, const Sequence& sequence, const Block& block, const DeltaScratch& delta, float* reads) {
                   if (sequence.tokens == 0) return;
                   operands.start(delta, *initial.at(n), block);
                   const auto fill = [&](int64_t first, int64_t count) {
                     operands.fill(delta, block, sequence.begin + first, count);
                   };
                   preview_block(delta, sequence.tokens, static_cast<PreviewRead>(args.read), fill, reads);
                   operands.write(delta, block, sequence.begin, sequence.tokens, reads);
                 });
}

}  // namespace

uint64_t gated_delta_rule_workspace(const clover_gated_delta_rule_args&, const clover_gated_delta_rule_dims& dims) {
  return ThreadScratch::bytes(commit_scratch_floats(dims));
}

void gated_delta_rule(const clover_call& call, const clover_gated_delta_rule_args& args,
                      const clover_gated_delta_rule_dims& dims) {
  with_float_type(args.q->dtype, [&](auto type) { commit<typename decltype(type)::type>(call, args, dims); });
}

uint64_t preview_gated_delta_rule_workspace(const clover_preview_gated_delta_rule_args&,
                                            const clover_preview_gated_delta_rule_dims& dims) {
  return ThreadScratch::bytes(preview_scratch_floats(dims));
}

void preview_gated_delta_rule(const clover_call& call, const clover_preview_gated_delta_rule_args& args,
                              const clover_preview_gated_delta_rule_dims& dims) {
  with_float_type(args.q->dtype, [&](auto type) { preview<typename decltype(type)::type>(call, args, dims); });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
