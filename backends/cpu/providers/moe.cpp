// fused_moe. Routes are sorted by expert, so that each expert's weights are read once; the shared expert is one more,
// which every token takes. A token's contributions are added in ascending order of its experts, the shared one last.
#include "../support/dot.hpp"
#include "../support/parallel.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

using Args = clover_fused_moe_args;
using Dims = clover_fused_moe_dims;

constexpr int64_t kInnerBlock = 32;  // rows of w1, and of w3, of a unit of work
constexpr int64_t kOuterBlock = 32;  // rows of w2 of a unit of work

// The workspace: counted when it has no memory yet, handed out in the same order when it has.
class Arena {
 public:
  explicit Arena(void* memory) : memory_(static_cast<char*>(memory)) {}

  template <class Item>
  Item* take(int64_t count) {
    char* part = memory_ == nullptr ? nullptr : memory_ + bytes_;
    bytes_ += static_cast<uint64_t>(round_up(count * static_cast<int64_t>(sizeof(Item)), CLOVER_WORKSPACE_ALIGNMENT));
    return reinterpret_cast<Item*>(part);
  }

  uint64_t bytes() const { return bytes_; }

 private:
  char* memory_;
  uint64_t bytes_ = 0;
};

struct Scratch {
  int64_t x_row, hidden_row, shared_hidden_row;  // floats of a row: whole vectors, padded with zeros
  float* x;                                      // [T, x_row]
  float* hidden;                                 // [T k, hidden_row], in the order of the sorted routes
  float* shared_hidden;                          // [T, shared_hidden_row]
  int64_t* token;                                // [T k]: each sorted route's token
  float* share;                                  // [T k]: what its output is multiplied by
  float* shared_share;                           // [T]
  int64_t* first_route;                          // [E + 1]: where each expert's routes begin
  int64_t* active;                               // [E]: the experts that have routes
  float* sums;                                   // [workers, T, kOuterBlock]
  int64_t workers;
  uint64_t bytes;

  // `sums` comes last and takes what is left, for as many threads as that is enough for.
  Scratch(const Dims& dims, void* memory, uint64_t available) {
    Arena arena(memory);
    x_row = round_up(dims.D, kLanes);
    hidden_row = round_up(dims.I, kLanes);
    shared_hidden_row = round_up(dims.Is, kLanes);
    x = arena.take<float>(dims.T * x_row);
    hidden = arena.take<float>(dims.T * dims.k * hidden_row);
    shared_hidden = arena.take<float>(dims.T * shared_hidden_row);
    token = arena.take<int64_t>(dims.T * dims.k);
    share = arena.take<float>(dims.T * dims.k);
    shared_share = arena.take<float>(dims.T);
    first_route = arena.take<int64_t>(dims.E + 1);
    active = arena.take<int64_t>(dims.E);
    const uint64_t fixed = arena.bytes();
    const uint64_t per_worker = static_cast<uint64_t>(maximum(1, dims.T)) * kOuterBlock * sizeof(float);
    workers = thread_count();
    if (memory != nullptr) workers = minimum(workers, static_cast<int64_t>((available - fixed) / per_worker));
    sums = arena.take<float>(workers * maximum(1, dims.T) * kOuterBlock);
    bytes = arena.bytes();
  }
};

// An expert and the rows that go through it.
template <class T>
struct Expert {
  const T* gate;  // rows of w1
  const T* up;    // rows of w3
  int64_t in_stride;
  const T* down;  // rows of w2
  int64_t out_stride;
  int64_t inner;  // I
  float* hidden;
  int64_t hidden_row;
  const int64_t* tokens;  // null: every token in turn
  const float* shares;
  int64_t routes;

  int64_t token(int64_t route) const { return tokens == nullptr ? route : tokens[route]; }
};

template <class T>
class Moe {
 public:
  Moe(const clover_call& call, const Args& args, const Dims& dims)
      : args_(args), dims_(dims), scratch_(dims, call.workspace, call.workspace_bytes) {}

  void run() const {
    prepare_tokens();
    const int64_t active = sort_routes();
    enter_experts(active);
    leave_experts(active);
  }

 private:
  bool has_shared() const { return args_.shared_w13 != nullptr; }

  void prepare_tokens() const {
    const View<const T, 2> x(*args_.x);
    const T* gate = args_.shared_gate == nullptr ? nullptr : data_of<const T>(*args_.shared_gate);
    parallel_for(dims_.T, 2 * dims_.D, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        float* row = scratch_.x + t * scratch_.x_row;
        for (int64_t i = 0; i < dims_.D; i += kLanes) store(row + i, load_part(x.at(t, i), dims_.D - i));
        scratch_.shared_share[t] = 1.0f;
        if (gate == nullptr) continue;
        float sums[1][kTileRows];
        dot_tile<1, T>({gate, gate, gate, gate}, {row}, dims_.D, sums);
        scratch_.shared_share[t] = sigmoid(splat(sums[0][0]))[0];
      }
    });
  }

  // A counting sort; routes of one expert keep their order. Returns how many experts have any.
  int64_t sort_routes() const {
    const View<const int32_t, 2> ids(*args_.ids);
    const View<const float, 2> weights(*args_.weights);
    int64_t* first = scratch_.first_route;
    for (int64_t e = 0; e <= dims_.E; ++e) first[e] = 0;
    for_each_route(ids, [&](int64_t, int64_t, int64_t e) { ++first[e + 1]; });
    int64_t active = 0;
    for (int64_t e = 0; e < dims_.E; ++e) {
      if (first[e + 1] > 0) scratch_.active[active++] = e;
      first[e + 1] += first[e];
    }
    // While routes are placed first[e] is where the next one goes; then all have moved to where the next expert begins.
    for_each_route(ids, [&](int64_t t, int64_t j, int64_t e) {
      const int64_t place = first[e]++;
      scratch_.token[place] = t;
      scratch_.share[place] = static_cast<float>(args_.routed_scale * *weights.at(t, j));
    });
    for (int64_t e = dims_.E; e > 0; --e) first[e] = first[e - 1];
    first[0] = 0;
    return active;
  }

  template <class Body>
  void for_each_route(const View<const int32_t, 2>& ids, const Body& body) const {
    for (int64_t t = 0; t < dims_.T; ++t) {
      for (int64_t j = 0; j < dims_.k; ++j) {
        const int32_t e = *ids.at(t, j);
        if (e >= 0) body(t, j, e);
      }
    }
  }

  Expert<T> routed_expert(int64_t e) const {
    const View<const T, 3> w13(*args_.w13), w2(*args_.w2);
    const int64_t first = scratch_.first_route[e];
    return {w13.at(e),
            w13.at(e, dims_.I),
            w13.strides[1],
            w2.at(e),
            w2.strides[1],
            dims_.I,
            scratch_.hidden + first * scratch_.hidden_row,
            scratch_.hidden_row,
            scratch_.token + first,
            scratch_.share + first,
            scratch_.first_route[e + 1] - first};
  }

  Expert<T> shared_expert() const {
    const View<const T, 2> w13(*args_.shared_w13), w2(*args_.shared_w2);
    return {w13.at(0),
            w13.at(dims_.Is),
            w13.strides[0],
            w2.at(0),
            w2.strides[0],
            dims_.Is,
            scratch_.shared_hidden,
            scratch_.shared_hidden_row,
            nullptr,
            scratch_.shared_share,
            dims_.T};
  }

  // silu(w1 x) * (w3 x) of every route. A unit of work is a block of an expert's rows, the shared expert's first: they
  // take longest.
  void enter_experts(int64_t active) const {
    const int64_t shared_units = has_shared() ? divide_up(dims_.Is, kInnerBlock) : 0;
    const int64_t blocks = divide_up(dims_.I, kInnerBlock);
    parallel_for(shared_units + active * blocks, kInnerBlock * dims_.D, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t routed = unit - shared_units;
        if (routed < 0) {
          enter_block(shared_expert(), unit * kInnerBlock);
        } else {
          enter_block(routed_expert(scratch_.active[routed / blocks]), routed % blocks * kInnerBlock);
        }
      }
    });
  }

  void enter_block(const Expert<T>& expert, int64_t first) const {
    int64_t route = 0;
    for (; route + 1 < expert.routes; route += kTileTokens) enter_tile<kTileTokens>(expert, route, first);
    if (route < expert.routes) enter_tile<1>(expert, route, first);
  }

  // The rows [first, first + kInnerBlock) of the expert for routes [route, route + tokens). Where there are fewer rows
  // or routes the last ones are computed again.
  template <int tokens>
  void enter_tile(const Expert<T>& expert, int64_t route, int64_t first) const {
    const float* x[tokens];
    for (int m = 0; m < tokens; ++m) {
      x[m] = scratch_.x + expert.token(minimum(route + m, expert.routes - 1)) * scratch_.x_row;
    }
    float gate[tokens][kInnerBlock] = {}, up[tokens][kInnerBlock] = {};
    const int64_t width = minimum(kInnerBlock, expert.inner - first);
    for (int64_t i = 0; i < width; i += 2) {
      const int64_t row = first + i, next = first + minimum(i + 1, width - 1);
      float sums[tokens][kTileRows];
      dot_tile<tokens, T>({expert.gate + row * expert.in_stride, expert.gate + next * expert.in_stride,
                           expert.up + row * expert.in_stride, expert.up + next * expert.in_stride},
                          x, dims_.D, sums);
      for (int m = 0; m < tokens; ++m) {
        gate[m][i] = sums[m][0];
        up[m][i] = sums[m][2];
        if (i + 1 == width) continue;
        gate[m][i + 1] = sums[m][1];
        up[m][i + 1] = sums[m][3];
      }
    }
    for (int m = 0; m < tokens && route + m < expert.routes; ++m) {
      float* hidden = expert.hidden + (route + m) * expert.hidden_row + first;
      for (int64_t i = 0; i < width; i += kLanes) store(hidden + i, silu(load(gate[m] + i)) * load(up[m] + i));
    }
  }

  // y = the sum of share * w2 hidden. A unit of work is a block of columns of y, through all experts.
  void leave_experts(int64_t active) const {
    const View<T, 2> y(*args_.y);
    const int64_t work = kOuterBlock * dims_.T * (1 + dims_.k * dims_.I + dims_.Is);
    parallel_for(divide_up(dims_.D, kOuterBlock), work, static_cast<int>(scratch_.workers),
                 [&](int64_t begin, int64_t end, int worker) {
                   float* sums = scratch_.sums + worker * dims_.T * kOuterBlock;
                   for (int64_t block = begin; block < end; ++block) leave_block(y, active, block * kOuterBlock, sums);
                 });
  }

  void leave_block(const View<T, 2>& y, int64_t active, int64_t first, float* sums) const {
    for (int64_t i = 0; i < dims_.T * kOuterBlock; ++i) sums[i] = 0.0f;
    const int64_t width = minimum(kOuterBlock, dims_.D - first);
    for (int64_t i = 0; i < active; ++i) add_expert(routed_expert(scratch_.active[i]), first, width, sums);
    if (has_shared()) add_expert(shared_expert(), first, width, sums);
    for (int64_t t = 0; t < dims_.T; ++t) {
      for (int64_t i = 0; i < width; i += kLanes) {
        store_part(y.at(t, first + i), width - i, load(sums + t * kOuterBlock + i));
      }
    }
  }

  void add_expert(const Expert<T>& expert, int64_t first, int64_t width, float* sums) const {
    int64_t route = 0;
    for (; route + 1 < expert.routes; route += kTileTokens) add_tile<kTileTokens>(expert, route, first, width, sums);
    if (route < expert.routes) add_tile<1>(expert, route, first, width, sums);
  }

  template <int tokens>
  void add_tile(const Expert<T>& expert, int64_t route, int64_t first, int64_t width, float* sums) const {
    const float* hidden[tokens];
    for (int m = 0; m < tokens; ++m) {
      hidden[m] = expert.hidden + minimum(route + m, expert.routes - 1) * expert.hidden_row;
    }
    for (int64_t i = 0; i < width; i += kTileRows) {
      const T* rows[kTileRows];
      for (int r = 0; r < kTileRows; ++r) {
        rows[r] = expert.down + (first + minimum(i + r, width - 1)) * expert.out_stride;
      }
      float dots[tokens][kTileRows];
      dot_tile<tokens, T>(rows, hidden, expert.inner, dots);
      for (int m = 0; m < tokens && route + m < expert.routes; ++m) {
        const float share = expert.shares[route + m];
        float* sum = sums + expert.token(route + m) * kOuterBlock + i;
        for (int r = 0; r < kTileRows; ++r) sum[r] += share * dots[m][r];
      }
    }
  }

  const Args& args_;
  const Dims& dims_;
  const Scratch scratch_;
};

}  // namespace

uint64_t fused_moe_workspace(const Args&, const Dims& dims) {
  return Scratch(dims, nullptr, 0).bytes;
}

void fused_moe(const clover_call& call, const Args& args, const Dims& dims) {
  if (dims.T == 0) return;
  with_float_type(args.x->dtype, [&](auto type) { Moe<typename decltype(type)::type>(call, args, dims).run(); });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
