// topk_softmax and block_coreset.
#include "../support/number.hpp"
#include "../support/parallel.hpp"
#include "../support/sequences.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

// A NaN ranks, and weighs, as -inf.
inline Vec without_nan(Vec values) {
  return values == values ? values : splat(-kInfinity);
}
inline float without_nan(float value) {
  return value == value ? value : -kInfinity;
}

// The k best of the candidates offered in ascending order of their index, best first; of equal ones the earlier.
struct Best {
  int32_t* ids;
  float* values;
  int64_t capacity;
  int64_t count = 0;

  void offer(int64_t id, float value) {
    if (count == capacity && !(value > values[count - 1])) return;
    int64_t place = count < capacity ? count++ : count - 1;
    for (; place > 0 && value > values[place - 1]; --place) {
      ids[place] = ids[place - 1];
      values[place] = values[place - 1];
    }
    ids[place] = static_cast<int32_t>(id);
    values[place] = value;
  }
};

// What turns a row's logits into softmax weights. A row with nothing above -inf has the greatest logit -inf.
struct Softmax {
  float greatest;
  float sum;

  bool empty() const { return greatest == -kInfinity; }
  Vec weights(Vec logits) const { return exponential(logits - greatest) / sum; }
};

template <class T>
Softmax softmax_of(const T* logits, int64_t E) {
  Vec greatest = splat(-kInfinity);
  for (int64_t e = 0; e < E; e += kLanes) {
    greatest = maximum(without_nan(load_part(logits + e, E - e, -kInfinity)), greatest);
  }
  Softmax softmax{max_lanes(greatest), 0.0f};
  if (softmax.empty()) return softmax;
  Vec sum{};
  for (int64_t e = 0; e < E; e += kLanes) {
    sum += exponential(without_nan(load_part(logits + e, E - e, -kInfinity)) - softmax.greatest);
  }
  softmax.sum = sum_lanes(sum);
  return softmax;
}

// Routes a token: `ids` and `weights` are its rows of the outputs, the weights holding logits until the best are known.
// `allowed` may be null.
template <class T>
void route(const T* logits, int64_t E, const uint8_t* allowed, const Softmax& softmax, bool renormalize, int64_t k,
           int32_t* ids, float* weights) {
  if (softmax.empty()) {
    for (int64_t j = 0; j < k; ++j) {
      ids[j] = -1;
      weights[j] = 0.0f;
    }
    return;
  }
  Best best{ids, weights, k};
  for (int64_t e = 0; e < E; ++e) {
    if (allowed == nullptr || allowed[e] != 0) best.offer(e, without_nan(to_float(logits[e])));
  }
  float sum = 0.0f;
  for (int64_t j = 0; j < k; j += kLanes) {
    store_part(weights + j, k - j, softmax.weights(load_part(weights + j, k - j)));
    for (int64_t i = j; i < minimum(j + kLanes, k); ++i) sum += weights[i];
  }
  if (!renormalize) return;
  for (int64_t j = 0; j < k; ++j) weights[j] = sum == 0.0f ? 0.0f : weights[j] / sum;
}

template <class T>
void route_all(const clover_topk_softmax_args& args, const clover_topk_softmax_dims& dims) {
  const View<const T, 2> logits(*args.logits);
  const View<int32_t, 2> ids(*args.ids);
  const View<float, 2> weights(*args.weights);
  constexpr int64_t kStepsPerExpert = 4;
  parallel_for(dims.T, dims.E * kStepsPerExpert, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      route(logits.at(t), dims.E, nullptr, softmax_of(logits.at(t), dims.E), args.renormalize != 0, dims.k, ids.at(t),
            weights.at(t));
    }
  });
}

// Workspace of block_coreset.
struct CoresetScratch {
  Softmax* softmax;  // [T]
  float* scores;     // [N, E], then of the kept experts [N, budget]
  float* ranked;
  int32_t* order;  // [N, budget]: the kept experts, best first

  static uint64_t bytes(const clover_block_coreset_dims& dims) {
    const int64_t floats = dims.N * (dims.E + dims.budget);
    return static_cast<uint64_t>(dims.T) * sizeof(Softmax) + static_cast<uint64_t>(floats) * sizeof(float) +
           static_cast<uint64_t>(dims.N * dims.budget) * sizeof(int32_t);
  }

  CoresetScratch(void* memory, const clover_block_coreset_dims& dims)
      : softmax(static_cast<Softmax*>(memory)),
        scores(reinterpret_cast<float*>(softmax + dims.T)),
        ranked(scores + dims.N * dims.E),
        order(reinterpret_cast<int32_t*>(ranked + dims.N * dims.budget)) {}
};

template <class T>
class Coreset {
 public:
  Coreset(const clover_call& call, const clover_block_coreset_args& args, const clover_block_coreset_dims& dims)
      : dims_(dims),
        logits_(*args.logits),
        cu_seqlens_(*args.cu_seqlens),
        live_(args.live),
        coreset_(*args.coreset),
        ids_(*args.ids),
        weights_(*args.weights),
        votes_(args.mode == CLOVER_block_coreset_mode_vote),
        renormalize_(args.renormalize != 0),
        top_p_((args.given >> 3 & 1) != 0 ? args.top_p : kNoTopP),
        scratch_(call.workspace, dims) {}

  // Tokens, then blocks, then tokens again: each step needs all of the one before.
  void run() const {
    constexpr int64_t kStepsPerExpert = 4;
    const int64_t tokens = *cu_seqlens_.at(dims_.N);
    parallel_for(tokens, dims_.E * kStepsPerExpert, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) prepare_token(t);
    });
    const int64_t per_token = votes_ ? dims_.k : dims_.E * kStepsPerExpert;
    const int64_t work = average_length(tokens, dims_.N) * per_token + dims_.E * kStepsPerExpert;
    parallel_for(dims_.N, work, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) choose(n);
    });
    parallel_for(tokens, dims_.E * kStepsPerExpert, [&](int64_t begin, int64_t end) {
      int64_t n = block_of(begin);
      for (int64_t t = begin; t < end; ++t) {
        while (t >= *cu_seqlens_.at(n + 1)) ++n;
        route(logits_.at(t), dims_.E, coreset_.at(n), scratch_.softmax[t], renormalize_, dims_.k, ids_.at(t),
              weights_.at(t));
      }
    });
  }

 private:
  static constexpr double kNoTopP = 0.0;

  bool lives(int64_t t) const {
    if (live_ == nullptr) return true;
    const View<const uint8_t, 1> live(*live_);
    return *live.at(t) != 0;
  }

  // The token's softmax and, in the outputs' rows, what it votes for: they are written anew in the last step.
  void prepare_token(int64_t t) const {
    scratch_.softmax[t] = softmax_of(logits_.at(t), dims_.E);
    if (!votes_ || !lives(t)) return;
    route(logits_.at(t), dims_.E, nullptr, scratch_.softmax[t], false, dims_.k, ids_.at(t), weights_.at(t));
  }

  void choose(int64_t n) const {
    const Sequence block = sequence_at(cu_seqlens_, n);
    uint8_t* kept = coreset_.at(n);
    for (int64_t e = 0; e < dims_.E; ++e) kept[e] = 0;
    if (block.tokens == 0) return;
    float* scores = scratch_.scores + n * dims_.E;
    for (int64_t e = 0; e < dims_.E; ++e) scores[e] = 0.0f;
    bool any = false;
    for (int64_t t = block.begin; t < block.begin + block.tokens; ++t) {
      if (!lives(t)) continue;
      any = true;
      if (votes_) {
        add_votes(t, scores);
      } else {
        raise_to_weights(t, scores);
      }
    }
    // A score that a token's infinite logit made NaN ranks behind all others. Scores of 0 leave experts in their order,
    // which is what a block without live tokens keeps.
    int32_t* order = scratch_.order + n * dims_.budget;
    Best best{order, scratch_.ranked + n * dims_.budget, dims_.budget};
    for (int64_t e = 0; e < dims_.E; ++e) best.offer(e, without_nan(scores[e]));
    const int64_t count = any && top_p_ != kNoTopP ? shortest_prefix(scores, order) : dims_.budget;
    for (int64_t i = 0; i < count; ++i) kept[order[i]] = 1;
  }

  void add_votes(int64_t t, float* scores) const {
    const int32_t* ids = ids_.at(t);
    const float* weights = weights_.at(t);
    for (int64_t j = 0; j < dims_.k; ++j) {
      if (ids[j] >= 0) scores[ids[j]] += weights[j];
    }
  }

  // A NaN weight makes the score NaN for good.
  void raise_to_weights(int64_t t, float* scores) const {
    const Softmax& softmax = scratch_.softmax[t];
    if (softmax.empty()) return;
    const T* logits = logits_.at(t);
    for (int64_t e = 0; e < dims_.E; e += kLanes) {
      const int64_t left = dims_.E - e;
      const Vec weight = softmax.weights(without_nan(load_part(logits + e, left, -kInfinity)));
      const Vec score = load_part(scores + e, left);
      store_part(scores + e, left, score >= weight || score != score ? score : weight);
    }
  }

  // How many of the best reach the share top_p of the block's score: at least k, and all when none does.
  int64_t shortest_prefix(const float* scores, const int32_t* order) const {
    double total = 0.0;
    for (int64_t e = 0; e < dims_.E; ++e) total += scores[e];
    double prefix = 0.0;
    for (int64_t i = 0; i < dims_.budget; ++i) {
      prefix += scores[order[i]];
      if (prefix / total >= top_p_) return maximum(dims_.k, i + 1);
    }
    return dims_.budget;
  }

  // The block that holds token t < cu_seqlens[N].
  int64_t block_of(int64_t t) const {
    int64_t low = 0, high = dims_.N;  // it is in [low, high)
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (*cu_seqlens_.at(middle) <= t ? low : high) = middle;
    }
    return low;
  }

  const clover_block_coreset_dims& dims_;
  const View<const T, 2> logits_;
  const View<const int32_t, 1> cu_seqlens_;
  const clover_tensor* live_;
  const View<uint8_t, 2> coreset_;
  const View<int32_t, 2> ids_;
  const View<float, 2> weights_;
  const bool votes_, renormalize_;
  const double top_p_;
  const CoresetScratch scratch_;
};

}  // namespace

void topk_softmax(const clover_call&, const clover_topk_softmax_args& args, const clover_topk_softmax_dims& dims) {
  with_float_type(args.logits->dtype, [&](auto type) { route_all<typename decltype(type)::type>(args, dims); });
}

uint64_t block_coreset_workspace(const clover_block_coreset_args&, const clover_block_coreset_dims& dims) {
  return CoresetScratch::bytes(dims);
}

void block_coreset(const clover_call& call, const clover_block_coreset_args& args,
                   const clover_block_coreset_dims& dims) {
  with_float_type(args.logits->dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    Coreset<T>(call, args, dims).run();
  });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
