// fused_moe, with and without the shared expert.
#include "case.hpp"
#include "check.hpp"
#include "reference.hpp"

namespace operators {
namespace {

constexpr int64_t kTokens = 6, kSize = 16, kExpertCount = 5, kInner = 8, kSharedInner = 4, kTop = 2;
constexpr double kScale = 1.5;

struct FusedMoe : Case {
  FusedMoe(DType x_type, Device device, bool shared) : Case(x_type, device), shared_(shared) {
    ids.set_all({0, 4, 3, -1, -1, -1, 2, 2, 4, 1, 0, 3});
  }
  const char* name() const override { return "fused_moe"; }
  uint32_t number() const override { return CLOVER_OP_fused_moe; }

  Tensor& x = random(X, {kTokens, kSize});
  Tensor& w13 = random(X, {kExpertCount, 2 * kInner, kSize});
  Tensor& w2 = random(X, {kExpertCount, kSize, kInner});
  Tensor& ids = input(DType::kInt32, {kTokens, kTop});
  Tensor& weights = random(DType::kFloat32, {kTokens, kTop}, 0, 1);
  Tensor& shared_w13 = random(X, {2 * kSharedInner, kSize});
  Tensor& shared_w2 = random(X, {kSize, kSharedInner});
  Tensor& shared_gate = random(X, {kSize});
  Tensor& y = output(X, {kTokens, kSize});

  void run(const Handle& handle) override {
    clover::fused_moe(handle, x.view(), w13.view(), w2.view(), ids.view(), weights.view(), optional(shared_w13),
                      optional(shared_w2), optional(shared_gate), kScale, clover::WeightLayout::kDense, y.view());
  }
  bool takes_workspace() const override { return true; }
  uint64_t workspace_size(const Handle& handle) override {
    return clover::fused_moe_workspace_size(handle, x.view(), w13.view(), w2.view(), ids.view(), weights.view(),
                                            optional(shared_w13), optional(shared_w2), optional(shared_gate), kScale,
                                            clover::WeightLayout::kDense, y.view());
  }
  void change_index_values() override { ids.set_all({-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 4}); }

  void verify() override {
    const reference::Values all_x = x.all_before(), all_w13 = w13.all_before(), all_w2 = w2.all_before();
    const reference::Values s_w13 = shared_w13.all_before(), s_w2 = shared_w2.all_before();
    reference::Values expected(kTokens * kSize, 0.0);
    for (int64_t t = 0; t < kTokens; ++t) {
      const double* row = all_x.data() + t * kSize;
      for (int64_t j = t * kTop; j < (t + 1) * kTop; ++j) {
        const int64_t e = static_cast<int64_t>(ids.before(j));
        if (e < 0) continue;
        reference::expert(row, all_w13.data() + e * 2 * kInner * kSize, all_w2.data() + e * kSize * kInner, kSize,
                          kInner, kScale * weights.before(j), expected.data() + t * kSize);
      }
      double gate = 0;
      for (int64_t d = 0; d < kSize; ++d) gate += row[d] * shared_gate.before(d);
      if (shared_)
        reference::expert(row, s_w13.data(), s_w2.data(), kSize, kSharedInner, reference::sigmoid(gate),
                          expected.data() + t * kSize);
    }
    check_close(y, expected, kExperts);
    for (int64_t d = 2 * kSize; !shared_ && d < 3 * kSize; ++d) CHECK(y.at(d) == 0);  // token 2 has no route
  }

 private:
  std::optional<TensorView> optional(const Tensor& tensor) const {
    return shared_ ? std::optional<TensorView>(tensor.view()) : std::nullopt;
  }

  bool shared_;
};

}  // namespace

void add_expert_cases(DType x_type, Device device, std::vector<CasePointer>* cases) {
  cases->push_back(std::make_unique<FusedMoe>(x_type, device, false));
  cases->push_back(std::make_unique<FusedMoe>(x_type, device, true));
}

}  // namespace operators
