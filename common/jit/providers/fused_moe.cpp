// fused_moe: routes sorted by expert, two grouped products, the shared expert's two, and a sum over each token's
// routes.
#include <algorithm>

#include "common/jit/provider.hpp"

namespace clover::jit {
namespace {

// How moe.py multiplies: as they are on CUDA, FP32 data in three passes of TF32; IEEE FP32 on HIP.
int64_t moe_precision(const char* data) {
  if (!device::Driver::kCuda) return 0;
  return data[0] == 'f' && data[2] == '3' ? 2 : 1;
}

// Rows of a tile, by the routes that an expert gets on average: few routes are a stream of weights.
int64_t rows_of_tile(int64_t rows, int64_t experts) {
  const int64_t mean = ceil_div(rows, experts);
  if (mean <= 16) return 16;
  return mean <= 64 || !device::Driver::kCuda ? 64 : 128;
}

// What a tile of a product is, as moe.py numbers it.
enum Routed { kShared = 0, kSorted = 1, kOneToken = 2 };

// One multilayer perceptron over `rows` routes, or tokens.
struct Mlp {
  device::View<3> w13, w2;
  int64_t rows, experts, inner;
  Routed routed;
};

class FusedMoe {
 public:
  static const char* plan(Triton& triton, const clover_fused_moe_args& a, const clover_fused_moe_dims& d, Plan* plan) {
    const int64_t routes = d.T * d.k;
    if (d.k == 0) return "k is 0: there are no routes";
    if (d.E > 1024) return "E is above 1024: a program looks at all experts at once";
    if (routes > INT32_MAX / 2) return "T * k is above 2^30";
    return FusedMoe(triton, a, d, plan).fill(routes);
  }

 private:
  FusedMoe(Triton& triton, const clover_fused_moe_args& a, const clover_fused_moe_dims& d, Plan* plan)
      : triton_(triton), a_(a), d_(d), plan_(*plan), data_(data_name(a.x)), x_(a.x), ids_(a.ids) {}

  const char* fill(int64_t routes) {
    const bool sorted = d_.T > 1;
    order_ = sorted ? plan_.reserve<int32_t>(routes) : static_cast<int32_t*>(ids_.data);
    starts_ = sorted ? plan_.reserve<int32_t>(d_.E + 1) : nullptr;
    float* const partial = plan_.reserve<float>(routes * d_.D);
    const bool has_shared = a_.shared_w13 != nullptr;
    float* const shared = has_shared ? plan_.reserve<float>(d_.T * d_.D) : nullptr;

    if (sorted) sort(routes);
    const Routed routed = sorted ? kSorted : kOneToken;
    mlp({device::View<3>(a_.w13), device::View<3>(a_.w2), routes, d_.E, d_.I, routed}, partial);
    if (has_shared) mlp({one_expert(a_.shared_w13), one_expert(a_.shared_w2), d_.T, 1, d_.Is, kShared}, shared);
    sum(partial, shared);
    return nullptr;
  }

  // A matrix as the only one of a batch.
  static device::View<3> one_expert(const clover_tensor* matrix) {
    const device::View<2> own(matrix);
    device::View<3> view;
    view.data = own.data;
    for (int axis = 0; axis < 2; ++axis) view.size[axis + 1] = own.size[axis], view.stride[axis + 1] = own.stride[axis];
    return view;
  }

  void sort(int64_t routes) {
    Launch& launch = plan_.add("moe_sort", data_);
    launch.set("TOPK", d_.k).configure(triton_.tuned());
    launch.grid[0] = static_cast<uint32_t>(d_.E + 1);
    launch.pass(ids_.data).pass(order_).pass(starts_).pass(ids_.stride[0]);
    launch.pass(static_cast<int32_t>(routes)).pass(static_cast<int32_t>(d_.E));
  }

  void mlp(const Mlp& m, float* out) {
    void* const hidden = plan_.reserve<char>(m.rows * m.inner * (data_[2] == '3' ? 4 : 2));
    const auto tokens = static_cast<int32_t>(d_.T), experts = static_cast<int32_t>(m.experts);
    const int64_t rows_of_one = rows_of_tile(m.rows, m.experts);
    const int64_t tiles = m.routed == kOneToken ? m.rows : m.rows / rows_of_one + std::min(m.experts, m.rows);
    const auto fix = [&](Launch& launch, int64_t columns) {
      launch.set("D", d_.D).set("I", m.inner).set("ROUTED", m.routed);
      launch.set("EXPERTS", m.routed == kSorted ? power_of_two(m.experts, 1) : 1);
      launch.set("PRECISION", moe_precision(data_)).set("BM", rows_of_one).configure(triton_.tuned());
      launch.grid[0] = static_cast<uint32_t>(ceil_div(columns, launch["BN"]));
      launch.grid[1] = static_cast<uint32_t>(tiles);
    };
    Launch& up = plan_.add("moe_up", data_);
    fix(up.set("TOPK", m.routed == kSorted ? d_.k : 1), m.inner);
    up.pass(x_.data).pass(m.w13.data).pass(order_).pass(starts_).pass(hidden);
    up.pass(x_.stride[0]).pass(m.w13.stride[0]).pass(m.w13.stride[1]).pass(m.inner).pass(tokens).pass(experts);
    Launch& down = plan_.add("moe_down", data_);
    fix(down, d_.D);
    down.pass(hidden).pass(m.w2.data).pass(order_).pass(starts_).pass(out);
    down.pass(m.inner).pass(m.w2.stride[0]).pass(m.w2.stride[1]).pass(d_.D).pass(tokens).pass(experts);
  }

  void sum(const float* partial, const float* shared) {
    const device::View<2> weights(a_.weights), y(a_.y);
    const device::View<1> gate(a_.shared_gate);
    Launch& launch = plan_.add("moe_sum", data_);
    launch.set("D", d_.D).set("TOPK", d_.k).set("SHARED", shared != nullptr).set("GATED", gate.data != nullptr);
    launch.configure(triton_.tuned());
    launch.grid[0] = static_cast<uint32_t>(d_.T);
    launch.grid[1] = static_cast<uint32_t>(ceil_div(d_.D, launch["BD"]));
    launch.pass(partial).pass(ids_.data).pass(weights.data).pass(shared).pass(x_.data).pass(gate.data).pass(y.data);
    launch.pass(d_.D).pass(ids_.stride[0]).pass(weights.stride[0]).pass(x_.stride[0]).pass(y.stride[0]);
    launch.pass(static_cast<int32_t>(d_.E)).pass(static_cast<float>(a_.routed_scale));
  }

  Triton& triton_;
  const clover_fused_moe_args& a_;
  const clover_fused_moe_dims& d_;
  Plan& plan_;
  const char* const data_;
  const device::View<2> x_, ids_;
  int32_t* order_ = nullptr;
  int32_t* starts_ = nullptr;
};

}  // namespace
}  // namespace clover::jit

CLOVER_TRITON_PROVIDER(fused_moe, clover::jit::FusedMoe);
