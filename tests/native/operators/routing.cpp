// topk_softmax, block_coreset, live_row_routes and merge_live_rows.
#include <cmath>

#include "case.hpp"
#include "check.hpp"
#include "reference.hpp"

namespace operators {
namespace {

constexpr int64_t kTokens = 7, kExperts = 12, kTop = 3;

reference::Values row_of(const Tensor& tensor, int64_t row) {
  const int64_t width = tensor.count() / tensor.size(0);
  reference::Values values;
  for (int64_t i = 0; i < width; ++i) values.push_back(tensor.before(row * width + i));
  return values;
}

void append(const reference::Routes& routes, reference::Values* ids, reference::Values* weights) {
  ids->insert(ids->end(), routes.ids.begin(), routes.ids.end());
  weights->insert(weights->end(), routes.weights.begin(), routes.weights.end());
}

struct TopkSoftmax : Case {
  OPERATOR_CASE(topk_softmax)
  Tensor& logits = random(X, {kTokens, kExperts}, -4, 4);
  Tensor& ids = output(DType::kInt32, {kTokens, kTop});
  Tensor& weights = output(DType::kFloat32, {kTokens, kTop});

  void run(const Handle& handle) override {
    clover::topk_softmax(handle, logits.view(), kTop, true, ids.view(), weights.view());
  }

  void verify() override {
    reference::Values expected_ids, expected_weights;
    for (int64_t t = 0; t < kTokens; ++t)
      append(reference::top_k(row_of(logits, t), std::vector<bool>(kExperts, true), kTop, true), &expected_ids,
             &expected_weights);
    check_equal(ids, expected_ids);
    check_close(weights, expected_weights, kPlain);
  }
};

struct BlockCoreset : Case {
  static constexpr int64_t kBudget = 6;

  BlockCoreset(DType x_type, Device device, clover::Mode mode, std::optional<double> top_p)
      : Case(x_type, device), mode_(mode), top_p_(top_p) {
    live.set_all({1, 0, 1, 1, 0, 1, 1});
  }
  const char* name() const override { return "block_coreset"; }
  uint32_t number() const override { return CLOVER_OP_block_coreset; }

  Tensor& logits = random(X, {kTokens, kExperts}, -4, 4);
  Tensor& cu_seqlens = indices({0, 4, 6});  // the last row belongs to no block
  Tensor& live = input(DType::kBool, {kTokens});
  Tensor& coreset = output(DType::kBool, {2, kExperts});
  Tensor& ids = output(DType::kInt32, {kTokens, kTop});
  Tensor& weights = output(DType::kFloat32, {kTokens, kTop});

  void run(const Handle& handle) override {
    clover::block_coreset(handle, logits.view(), cu_seqlens.view(), live.view(), kTop, kBudget, mode_, top_p_, false,
                          coreset.view(), ids.view(), weights.view());
  }
  bool takes_workspace() const override { return true; }
  uint64_t workspace_size(const Handle& handle) override {
    return clover::block_coreset_workspace_size(handle, logits.view(), cu_seqlens.view(), live.view(), kTop, kBudget,
                                                mode_, top_p_, false, coreset.view(), ids.view(), weights.view());
  }
  void change_index_values() override {
    cu_seqlens.set_all({0, 0, 7});
    live.set_all({0, 0, 0, 0, 0, 0, 0});
  }

  void verify() override {
    reference::Values expected_coreset, expected_ids, expected_weights;
    for (int64_t block = 0; block < 2; ++block) {
      const int64_t begin = static_cast<int64_t>(cu_seqlens.before(block));
      const int64_t end = static_cast<int64_t>(cu_seqlens.before(block + 1));
      std::vector<reference::Values> voters;
      for (int64_t t = begin; t < end; ++t)
        if (live.before(t) != 0) voters.push_back(row_of(logits, t));
      const std::vector<bool> kept = reference::coreset(voters, kExperts, kTop, kBudget, mode_, top_p_.value_or(2));
      expected_coreset.insert(expected_coreset.end(), kept.begin(), kept.end());
      for (int64_t t = begin; t < end; ++t)
        append(reference::top_k(row_of(logits, t), kept, kTop, false), &expected_ids, &expected_weights);
    }
    check_equal(coreset, expected_coreset);
    check_equal(ids, expected_ids);
    check_close(weights, expected_weights, kPlain);
  }

 private:
  clover::Mode mode_;
  std::optional<double> top_p_;
};

struct LiveRowRoutes : Case {
  LiveRowRoutes(DType x_type, Device device) : Case(x_type, device) {
    for (int64_t i = 0; i < ids.count(); ++i) ids.set(i, static_cast<double>(i % kExperts));
    live.set_all({0, 1, 1, 0, 1, 0, 1});
  }
  const char* name() const override { return "live_row_routes"; }
  uint32_t number() const override { return CLOVER_OP_live_row_routes; }

  Tensor& ids = input(DType::kInt32, {kTokens, kTop});
  Tensor& weights = random(DType::kFloat32, {kTokens, kTop});
  Tensor& live = input(DType::kBool, {kTokens});
  Tensor& live_ids = output(DType::kInt32, {kTokens, kTop});
  Tensor& live_weights = output(DType::kFloat32, {kTokens, kTop});
  Tensor& rows = output(DType::kInt32, {kTokens});
  Tensor& count = output(DType::kInt32, {1});

  void run(const Handle& handle) override {
    clover::live_row_routes(handle, ids.view(), weights.view(), live.view(), live_ids.view(), live_weights.view(),
                            rows.view(), count.view());
  }

  void verify() override {
    reference::Values expected_ids, expected_weights, expected_rows;
    for (int64_t t = 0; t < kTokens; ++t) {
      const bool alive = live.before(t) != 0;
      if (alive) expected_rows.push_back(static_cast<double>(t));
      for (int64_t j = t * kTop; j < (t + 1) * kTop; ++j) {
        expected_ids.push_back(alive ? ids.before(j) : -1);
        expected_weights.push_back(alive ? weights.before(j) : 0);
      }
    }
    check_equal(count, {static_cast<double>(expected_rows.size())});
    expected_rows.resize(kTokens, -1);
    check_equal(rows, expected_rows);
    check_equal(live_ids, expected_ids);
    check_equal(live_weights, expected_weights);
  }
};

struct MergeLiveRows : Case {
  MergeLiveRows(DType x_type, Device device) : Case(x_type, device) {
    cache.randomize(29, -1, 1);
    live.set_all({0, 1, 1, 0, 1, 0, 1});
    fresh.set(0, std::nan(""));  // row 0 is not live: nothing of it may come through
  }
  const char* name() const override { return "merge_live_rows"; }
  uint32_t number() const override { return CLOVER_OP_merge_live_rows; }

  static constexpr int64_t kSize = 11;
  Tensor& fresh = random(X, {kTokens, kSize});
  Tensor& cache = in_out(X, {kTokens, kSize});
  Tensor& live = input(DType::kBool, {kTokens});
  Tensor& out = output(X, {kTokens, kSize});

  void run(const Handle& handle) override {
    clover::merge_live_rows(handle, fresh.view(), cache.view(), live.view(), out.view());
  }

  void verify() override {
    reference::Values expected;
    for (int64_t i = 0; i < fresh.count(); ++i)
      expected.push_back(live.before(i / kSize) != 0 ? fresh.before(i) : cache.before(i));
    check_equal(out, expected);
    check_equal(cache, expected);
  }
};

}  // namespace

void add_routing_cases(DType x_type, Device device, std::vector<CasePointer>* cases) {
  cases->push_back(std::make_unique<TopkSoftmax>(x_type, device));
  cases->push_back(std::make_unique<BlockCoreset>(x_type, device, clover::Mode::kVote, std::nullopt));
  cases->push_back(std::make_unique<BlockCoreset>(x_type, device, clover::Mode::kMax, 0.6));
  cases->push_back(std::make_unique<LiveRowRoutes>(x_type, device));
  cases->push_back(std::make_unique<MergeLiveRows>(x_type, device));
}

}  // namespace operators
