#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reference {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double silu(double x) {
  return x * sigmoid(x);
}

Values Convolution::run(int64_t begin, int64_t end, const Values& past, Values* y) const {
  const int64_t old = width - 1, length = end - begin;
  Values rest(past.size());
  std::vector<Values> z(channels);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < old; ++i) z[c].push_back(past[c * old + i]);
    for (int64_t t = begin; t < end; ++t) z[c].push_back(x[t * channels + c]);
    for (int64_t i = 0; i < old; ++i) rest[c * old + i] = z[c][length + i];
  }
  for (int64_t t = 0; t < length; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      double sum = bias.empty() ? 0 : bias[c];
      for (int64_t j = 0; j < width; ++j) sum += weight[c * width + j] * z[c][t + j];
      y->push_back(silu ? reference::silu(sum) : sum);
    }
  return rest;
}

void gating(const Values& a, const Values& b, const Values& A_log, const Values& dt_bias, Values* g, Values* beta) {
  for (size_t i = 0; i < a.size(); ++i) {
    const double shifted = a[i] + dt_bias[i % dt_bias.size()];
    g->push_back(-std::exp(A_log[i % A_log.size()]) * std::log1p(std::exp(shifted)));
    beta->push_back(sigmoid(b[i]));
  }
}

Values DeltaRule::normalized(const Values& x, int64_t token, int64_t head) const {
  const auto first = x.begin() + (token * heads + head) * K;
  Values row(first, first + K);
  if (!l2norm) return row;
  const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
  for (double& value : row) value /= std::sqrt(squares + 1e-6);
  return row;
}

void DeltaRule::step(int64_t token, Values* state) const {
  for (int64_t j = 0; j < value_heads; ++j) {
    const Values key = normalized(k, token, j / (value_heads / heads));
    const double decay = std::exp(g[token * value_heads + j]), strength = beta[token * value_heads + j];
    for (int64_t row = 0; row < V; ++row) {
      double* s = state->data() + (j * V + row) * K;
      double seen = 0;
      for (int64_t i = 0; i < K; ++i) seen += (s[i] *= decay) * key[i];
      const double update = strength * (v[(token * value_heads + j) * V + row] - seen);
      for (int64_t i = 0; i < K; ++i) s[i] += update * key[i];
    }
  }
}

void DeltaRule::read(int64_t token, const Values& state, double* o) const {
  for (int64_t j = 0; j < value_heads; ++j) {
    const Values query = normalized(q, token, j / (value_heads / heads));
    for (int64_t row = 0; row < V; ++row)
      for (int64_t i = 0; i < K; ++i) o[j * V + row] += scale * state[(j * V + row) * K + i] * query[i];
  }
}

Values DeltaRule::commit(int64_t begin, int64_t end, Values state, Values* o) const {
  for (int64_t t = begin; t < end; ++t) {
    step(t, &state);
    o->resize(o->size() + value_heads * V);
    read(t, state, o->data() + o->size() - value_heads * V);
  }
  return state;
}

void DeltaRule::preview(int64_t begin, int64_t end, const Values& state, clover::Read how, Values* o) const {
  const int64_t row = value_heads * V;
  o->resize(o->size() + (end - begin) * row);
  double* rows = o->data() + o->size() - (end - begin) * row;
  Values forward = state, backward(state.size(), 0.0);
  for (int64_t t = begin; t < end; ++t) {
    step(t, &forward);
    if (how != clover::Read::kBlock) read(t, forward, rows + (t - begin) * row);
  }
  for (int64_t t = end - 1; t >= begin; --t) {
    if (how == clover::Read::kBlock) read(t, forward, rows + (t - begin) * row);
    if (how == clover::Read::kBidirectional) read(t, backward, rows + (t - begin) * row);
    step(t, &backward);
  }
}

Values rms_norm_gated(const Values& x, const Values& weight, const Values& z, double eps) {
  const size_t width = weight.size();
  Values y(x.size());
  for (size_t first = 0; first < x.size(); first += width) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += x[first + i] * x[first + i];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (size_t i = 0; i < width; ++i) y[first + i] = x[first + i] * factor * weight[i] * silu(z[first + i]);
  }
  return y;
}

namespace {

Values softmax(const Values& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  Values weights;
  for (const double logit : logits) weights.push_back(std::exp(logit - largest));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Indices by value, the largest first, ties to the lower index.
std::vector<int64_t> ranked(const Values& values) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return values[a] > values[b]; });
  return order;
}

}  // namespace

Routes top_k(const Values& logits, const std::vector<bool>& kept, int64_t k, bool renormalize) {
  const Values weights = softmax(logits);
  Routes routes;
  double sum = 0;
  for (const int64_t e : ranked(logits)) {
    if (!kept[e] || static_cast<int64_t>(routes.ids.size()) == k) continue;
    routes.ids.push_back(e);
    routes.weights.push_back(weights[e]);
    sum += weights[e];
  }
  if (renormalize)
    for (double& weight : routes.weights) weight /= sum;
  return routes;
}

std::vector<bool> coreset(const std::vector<Values>& live_logits, int64_t experts, int64_t k, int64_t budget,
                          clover::Mode mode, double top_p) {
  Values score(experts, 0.0);
  for (const Values& logits : live_logits) {
    const Values weights = softmax(logits);
    const std::vector<int64_t> order = ranked(logits);
    for (int64_t i = 0; i < experts; ++i) {
      const int64_t e = order[i];
      if (mode == clover::Mode::kMax) score[e] = std::max(score[e], weights[e]);
      if (mode == clover::Mode::kVote && i < k) score[e] += weights[e];
    }
  }
  const double total = std::accumulate(score.begin(), score.end(), 0.0);
  const std::vector<int64_t> order = ranked(score);
  std::vector<bool> kept(experts, false);
  double sum = 0;
  for (int64_t i = 0; i < budget; ++i) {
    if (!live_logits.empty() && i >= k && sum >= top_p * total) break;
    kept[order[i]] = true;
    sum += score[order[i]];
  }
  return kept;
}

void expert(const double* x, const double* w13, const double* w2, int64_t D, int64_t I, double factor, double* y) {
  Values inner(I);
  for (int64_t i = 0; i < I; ++i) {
    const double gate = std::inner_product(x, x + D, w13 + i * D, 0.0);
    inner[i] = silu(gate) * std::inner_product(x, x + D, w13 + (I + i) * D, 0.0);
  }
  for (int64_t d = 0; d < D; ++d) y[d] += factor * std::inner_product(inner.begin(), inner.end(), w2 + d * I, 0.0);
}

}  // namespace reference
