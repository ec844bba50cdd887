// gated_delta_net_gating, gated_delta_rule, preview_gated_delta_rule and preview_gdn.
#include <cmath>

#include "case.hpp"
#include "check.hpp"
#include "reference.hpp"
#include "sequences.hpp"

namespace operators {
namespace {

constexpr int64_t kHeads = 1, kValueHeads = 2, kK = 8, kV = 6;

struct GatedDeltaNetGating : Case {
  OPERATOR_CASE(gated_delta_net_gating)
  Tensor& ba = random(X, {kTokens, kValueHeads, 2}, -3, 3);  // b and a interleaved
  Tensor& A_log = random(DType::kFloat32, {kValueHeads});
  Tensor& dt_bias = random(X, {kValueHeads});
  Tensor& g = output(DType::kFloat32, {kTokens, kValueHeads});
  Tensor& beta = output(DType::kFloat32, {kTokens, kValueHeads});

  void run(const Handle& handle) override {
    const Shape shape{kTokens, kValueHeads}, strides{2 * kValueHeads, 2};
    clover::gated_delta_net_gating(handle, ba.view(shape, strides, 1), ba.view(shape, strides, 0), A_log.view(),
                                   dt_bias.view(), g.view(), beta.view());
  }

  void verify() override {
    reference::Values a, b, expected_g, expected_beta;
    for (int64_t i = 0; i < ba.count(); ++i) (i % 2 ? a : b).push_back(ba.before(i));
    reference::gating(a, b, A_log.all_before(), dt_bias.all_before(), &expected_g, &expected_beta);
    check_close(g, expected_g, kPlain);
    check_close(beta, expected_beta, kPlain);
  }
};

struct GatedDeltaRule : Case {
  OPERATOR_CASE(gated_delta_rule)
  Tensor& q = random(X, {kTokens, kHeads, kK});
  Tensor& k = random(X, {kTokens, kHeads, kK}, -0.6, 0.6);
  Tensor& v = random(X, {kTokens, kValueHeads, kV});
  Tensor& g = random(DType::kFloat32, {kTokens, kValueHeads}, -1, 0);
  Tensor& beta = random(DType::kFloat32, {kTokens, kValueHeads}, 0, 1);
  Tensor& state = pool(in_out(DType::kFloat32, {kSlots, kValueHeads, kV, kK}));
  Tensor& cu_seqlens = indices(kCuSeqlens);
  Tensor& initial = indices(kInitialSlots);
  Tensor& final = indices(kFinalSlots);
  Tensor& o = output(X, {kTokens, kValueHeads, kV});

  void run(const Handle& handle) override {
    clover::gated_delta_rule(handle, q.view(), k.view(), v.view(), g.view(), beta.view(), state.view(),
                             cu_seqlens.view(), initial.view(), final.view(), std::nullopt, false, std::nullopt,
                             o.view());
  }
  bool takes_workspace() const override { return true; }
  uint64_t workspace_size(const Handle& handle) override {
    return clover::gated_delta_rule_workspace_size(handle, q.view(), k.view(), v.view(), g.view(), beta.view(),
                                                   state.view(), cu_seqlens.view(), initial.view(), final.view(),
                                                   std::nullopt, false, std::nullopt, o.view());
  }
  void change_index_values() override { change_sequences(&cu_seqlens, &initial, &final); }

  void verify() override {
    const reference::DeltaRule rule{kHeads,
                                    kValueHeads,
                                    kK,
                                    kV,
                                    q.all_before(),
                                    k.all_before(),
                                    v.all_before(),
                                    g.all_before(),
                                    beta.all_before(),
                                    1 / std::sqrt(double{kK}),
                                    false};
    reference::Values expected, states = state.all_before();
    for_each_sequence(cu_seqlens, initial, [&](int64_t i, int64_t begin, int64_t end) {
      write_slot(&states, final, i, rule.commit(begin, end, read_slot(state, initial, i), &expected));
    });
    check_close(o, expected, kDelta);
    check_close(state, states, kDelta);
  }
};

template <clover::Read kRead>
struct PreviewGatedDeltaRule : Case {
  OPERATOR_CASE(preview_gated_delta_rule)
  static constexpr double kScale = 0.5;
  Tensor& q = random(X, {kTokens, kHeads, kK});
  Tensor& k = random(X, {kTokens, kHeads, kK}, -2, 2);
  Tensor& v = random(X, {kTokens, kValueHeads, kV});
  Tensor& g = random(DType::kFloat32, {kTokens, kValueHeads}, -1, 0);
  Tensor& beta = random(DType::kFloat32, {kTokens, kValueHeads}, 0, 1);
  Tensor& state = random(DType::kFloat32, {kSlots, kValueHeads, kV, kK});
  Tensor& cu_seqlens = indices(kCuSeqlens);
  Tensor& initial = indices(kInitialSlots);
  Tensor& o = output(X, {kTokens, kValueHeads, kV});

  void run(const Handle& handle) override {
    clover::preview_gated_delta_rule(handle, q.view(), k.view(), v.view(), g.view(), beta.view(), state.view(),
                                     cu_seqlens.view(), initial.view(), kScale, true, kRead, 8, o.view());
  }
  bool takes_workspace() const override { return true; }
  uint64_t workspace_size(const Handle& handle) override {
    return clover::preview_gated_delta_rule_workspace_size(handle, q.view(), k.view(), v.view(), g.view(), beta.view(),
                                                           state.view(), cu_seqlens.view(), initial.view(), kScale,
                                                           true, kRead, 8, o.view());
  }
  void change_index_values() override { change_sequences(&cu_seqlens, &initial, nullptr); }

  void verify() override {
    const reference::DeltaRule rule{
        kHeads,         kValueHeads,       kK,     kV,  q.all_before(), k.all_before(), v.all_before(),
        g.all_before(), beta.all_before(), kScale, true};
    reference::Values expected;
    for_each_sequence(cu_seqlens, initial, [&](int64_t i, int64_t begin, int64_t end) {
      rule.preview(begin, end, read_slot(state, initial, i), kRead, &expected);
    });
    check_close(o, expected, kDelta);
  }
};

struct PreviewGdn : Case {
  OPERATOR_CASE(preview_gdn)
  static constexpr int64_t kChannels = 2 * kHeads * kK + kValueHeads * kV, kWidth = 4;
  static constexpr double kEps = 1e-5;
  Tensor& qkv = random(X, {kTokens, kChannels}, -2, 2);
  Tensor& a = random(X, {kTokens, kValueHeads});
  Tensor& b = random(X, {kTokens, kValueHeads});
  Tensor& z = random(X, {kTokens, kValueHeads, kV}, -2, 2);
  Tensor& conv_weight = random(X, {kChannels, kWidth});
  Tensor& conv_bias = random(X, {kChannels});
  Tensor& conv_state = random(X, {kSlots, kChannels, kWidth - 1});
  Tensor& A_log = random(DType::kFloat32, {kValueHeads});
  Tensor& dt_bias = random(X, {kValueHeads});
  Tensor& state = random(DType::kFloat32, {kSlots, kValueHeads, kV, kK});
  Tensor& cu_seqlens = indices(kCuSeqlens);
  Tensor& initial = indices(kInitialSlots);
  Tensor& norm_weight = random(X, {kV}, 0.5, 1.5);
  Tensor& o = output(X, {kTokens, kValueHeads, kV});

  void run(const Handle& handle) override {
    clover::preview_gdn(handle, qkv.view(), a.view(), b.view(), z.view(), conv_weight.view(), conv_bias.view(),
                        conv_state.view(), A_log.view(), dt_bias.view(), state.view(), cu_seqlens.view(),
                        initial.view(), norm_weight.view(), kEps, std::nullopt, clover::Read::kBidirectional,
                        std::nullopt, o.view());
  }
  bool takes_workspace() const override { return true; }
  uint64_t workspace_size(const Handle& handle) override {
    return clover::preview_gdn_workspace_size(handle, qkv.view(), a.view(), b.view(), z.view(), conv_weight.view(),
                                              conv_bias.view(), conv_state.view(), A_log.view(), dt_bias.view(),
                                              state.view(), cu_seqlens.view(), initial.view(), norm_weight.view(), kEps,
                                              std::nullopt, clover::Read::kBidirectional, std::nullopt, o.view());
  }
  void change_index_values() override { change_sequences(&cu_seqlens, &initial, nullptr); }

  void verify() override {
    const reference::Convolution convolution{
        kChannels, kWidth, qkv.all_before(), conv_weight.all_before(), conv_bias.all_before(), true};
    reference::Values mixed;
    for_each_sequence(cu_seqlens, initial, [&](int64_t i, int64_t begin, int64_t end) {
      convolution.run(begin, end, read_slot(conv_state, initial, i), &mixed);
    });
    reference::DeltaRule rule{kHeads, kValueHeads, kK, kV, {}, {}, {}, {}, {}, 1 / std::sqrt(double{kK}), true};
    for (size_t i = 0; i < mixed.size(); ++i) {
      const int64_t channel = static_cast<int64_t>(i) % kChannels;
      (channel < kHeads * kK ? rule.q : channel < 2 * kHeads * kK ? rule.k : rule.v).push_back(mixed[i]);
    }
    reference::gating(a.all_before(), b.all_before(), A_log.all_before(), dt_bias.all_before(), &rule.g, &rule.beta);
    reference::Values read;
    for_each_sequence(cu_seqlens, initial, [&](int64_t i, int64_t begin, int64_t end) {
      rule.preview(begin, end, read_slot(state, initial, i), clover::Read::kBidirectional, &read);
    });
    check_close(o, reference::rms_norm_gated(read, norm_weight.all_before(), z.all_before(), kEps), kLayer);
  }
};

}  // namespace

void add_delta_cases(DType x_type, Device device, std::vector<CasePointer>* cases) {
  cases->push_back(std::make_unique<GatedDeltaNetGating>(x_type, device));
  cases->push_back(std::make_unique<GatedDeltaRule>(x_type, device));
  cases->push_back(std::make_unique<PreviewGatedDeltaRule<clover::Read::kBidirectional>>(x_type, device));
  cases->push_back(std::make_unique<PreviewGatedDeltaRule<clover::Read::kBlock>>(x_type, device));
  cases->push_back(std::make_unique<PreviewGatedDeltaRule<clover::Read::kCausal>>(x_type, device));
  cases->push_back(std::make_unique<PreviewGdn>(x_type, device));
}

}  // namespace operators
