// causal_conv1d and preview_conv1d.
#include "case.hpp"
#include "check.hpp"
#include "reference.hpp"
#include "sequences.hpp"

namespace operators {
namespace {

constexpr int64_t kChannels = 5, kWidth = 4;

reference::Convolution convolution(const Tensor& x, const Tensor& weight, const Tensor* bias, bool silu) {
  return {kChannels,
          kWidth,
          x.all_before(),
          weight.all_before(),
          bias == nullptr ? reference::Values() : bias->all_before(),
          silu};
}

struct CausalConv1d : Case {
  OPERATOR_CASE(causal_conv1d)
  Tensor& x = random(X, {kTokens, kChannels});
  Tensor& weight = random(X, {kChannels, kWidth});
  Tensor& bias = random(X, {kChannels});
  Tensor& conv_state = pool(in_out(X, {kSlots, kChannels, kWidth - 1}));
  Tensor& cu_seqlens = indices(kCuSeqlens);
  Tensor& initial = indices(kInitialSlots);
  Tensor& final = indices(kFinalSlots);
  Tensor& y = output(X, {kTokens, kChannels});

  void run(const Handle& handle) override {
    clover::causal_conv1d(handle, x.view(), weight.view(), bias.view(), conv_state.view(), cu_seqlens.view(),
                          initial.view(), final.view(), clover::Activation::kSilu, std::nullopt, y.view());
  }

  void verify() override {
    const reference::Convolution rule = convolution(x, weight, &bias, true);
    reference::Values expected, states = conv_state.all_before();
    for_each_sequence(cu_seqlens, initial, [&](int64_t i, int64_t begin, int64_t end) {
      write_slot(&states, final, i, rule.run(begin, end, read_slot(conv_state, initial, i), &expected));
    });
    check_close(y, expected, kPlain);
    check_equal(conv_state, states);
  }
};

struct PreviewConv1d : Case {
  OPERATOR_CASE(preview_conv1d)
  Tensor& x = random(X, {kTokens, kChannels});
  Tensor& weight = random(X, {kChannels, kWidth});
  Tensor& conv_state = random(X, {kSlots, kChannels, kWidth - 1});
  Tensor& cu_seqlens = indices(kCuSeqlens);
  Tensor& initial = indices(kInitialSlots);
  Tensor& y = output(X, {kTokens, kChannels});

  void run(const Handle& handle) override {
    clover::preview_conv1d(handle, x.view(), weight.view(), std::nullopt, conv_state.view(), cu_seqlens.view(),
                           initial.view(), clover::Activation::kNone, 8, y.view());
  }

  void verify() override {
    const reference::Convolution rule = convolution(x, weight, nullptr, false);
    reference::Values expected;
    for_each_sequence(cu_seqlens, initial, [&](int64_t i, int64_t begin, int64_t end) {
      rule.run(begin, end, read_slot(conv_state, initial, i), &expected);
    });
    check_close(y, expected, kPlain);
  }
};

}  // namespace

void add_convolution_cases(DType x_type, Device device, std::vector<CasePointer>* cases) {
  cases->push_back(std::make_unique<CausalConv1d>(x_type, device));
  cases->push_back(std::make_unique<PreviewConv1d>(x_type, device));
}

}  // namespace operators
