// rotary_embedding, rearrange, cast and rms_norm_gated.
#include "case.hpp"
#include "check.hpp"
#include "reference.hpp"

namespace operators {
namespace {

struct RotaryEmbedding : Case {
  static constexpr int64_t kTokens = 5, kHeads = 3, kKeyHeads = 1, kSize = 8, kRotary = 6, kPositions = 10;

  RotaryEmbedding(DType x_type, Device device, bool interleaved) : Case(x_type, device), interleaved_(interleaved) {
    q.randomize(31, -1, 1);
    k.randomize(37, -1, 1);
  }
  const char* name() const override { return "rotary_embedding"; }
  uint32_t number() const override { return CLOVER_OP_rotary_embedding; }

  Tensor& positions = indices({0, 9, 4, 4, 7});
  Tensor& q = in_out(X, {kTokens, kHeads, kSize});
  Tensor& k = in_out(X, {kTokens, kKeyHeads, kSize});
  Tensor& cos_sin = random(X, {kPositions, kRotary});

  void run(const Handle& handle) override {
    clover::rotary_embedding(handle, positions.view(), q.view(), k.view(), cos_sin.view(), interleaved_);
  }

  void verify() override {
    check_close(q, rotated(q), kPlain);
    check_close(k, rotated(k), kPlain);
  }

 private:
  reference::Values rotated(const Tensor& x) const {
    reference::Values values = x.all_before();
    const int64_t heads = x.size(1), half = kRotary / 2;
    for (int64_t row = 0; row < x.size(0) * heads; ++row) {
      const int64_t table = static_cast<int64_t>(positions.before(row / heads)) * kRotary;
      for (int64_t i = 0; i < half; ++i) {
        const double cos = cos_sin.before(table + i), sin = cos_sin.before(table + half + i);
        double& x1 = values[row * kSize + (interleaved_ ? 2 * i : i)];
        double& x2 = values[row * kSize + (interleaved_ ? 2 * i + 1 : i + half)];
        const double first = x1 * cos - x2 * sin;
        x2 = x2 * cos + x1 * sin;
        x1 = first;
      }
    }
    return values;
  }

  bool interleaved_;
};

constexpr int64_t kRows = 3, kColumns = 4, kDepth = 5;
// [columns, depth, rows] out of [rows, columns, depth], depth backwards.
const Shape kPermuted{kColumns, kDepth, kRows}, kPermutedStrides{kDepth, -1, kColumns * kDepth};

double permuted_element(const Tensor& source, int64_t i) {
  const int64_t row = i % kRows, depth = i / kRows % kDepth, column = i / kRows / kDepth;
  return source.before((row * kColumns + column) * kDepth + kDepth - 1 - depth);
}

struct Rearrange : Case {
  OPERATOR_CASE(rearrange)
  Tensor& src = random(X, {kRows, kColumns, kDepth});
  Tensor& dst = output(X, kPermuted);

  void run(const Handle& handle) override {
    clover::rearrange(handle, src.view(kPermuted, kPermutedStrides, kDepth - 1), dst.view());
  }

  void verify() override {
    reference::Values expected;
    for (int64_t i = 0; i < dst.count(); ++i) expected.push_back(permuted_element(src, i));
    check_equal(dst, expected);
  }
};

struct Cast : Case {
  OPERATOR_CASE(cast)
  const DType target = X == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat32;
  Tensor& src = random(X, {kRows, kColumns, kDepth}, -100, 100);
  Tensor& dst = output(target, kPermuted);

  void run(const Handle& handle) override {
    clover::cast(handle, src.view(kPermuted, kPermutedStrides, kDepth - 1), dst.view());
  }

  void verify() override {
    reference::Values expected;
    for (int64_t i = 0; i < dst.count(); ++i) expected.push_back(round_to(target, permuted_element(src, i)));
    check_equal(dst, expected);
  }
};

struct RmsNormGated : Case {
  OPERATOR_CASE(rms_norm_gated)
  static constexpr double kEps = 1e-3;
  Tensor& x = random(X, {4, 2, 7});
  Tensor& weight = random(X, {7});
  Tensor& z = random(X, {4, 2, 7}, -3, 3);
  Tensor& y = output(X, {4, 2, 7});

  void run(const Handle& handle) override {
    clover::rms_norm_gated(handle, x.view(), weight.view(), z.view(), kEps, y.view());
  }

  void verify() override {
    check_close(y, reference::rms_norm_gated(x.all_before(), weight.all_before(), z.all_before(), kEps), kPlain);
  }
};

}  // namespace

void add_layout_cases(DType x_type, Device device, std::vector<CasePointer>* cases) {
  cases->push_back(std::make_unique<RotaryEmbedding>(x_type, device, false));
  cases->push_back(std::make_unique<RotaryEmbedding>(x_type, device, true));
  cases->push_back(std::make_unique<Rearrange>(x_type, device));
  cases->push_back(std::make_unique<Cast>(x_type, device));
  cases->push_back(std::make_unique<RmsNormGated>(x_type, device));
}

}  // namespace operators
