// The equations of docs/operators.md as plain double-precision loops. They share no code with a provider.
#pragma once

#include <clover/ops.h>

#include <cstdint>
#include <vector>

namespace reference {

using Values = std::vector<double>;

double sigmoid(double x);
double silu(double x);

// Where each sequence starts and ends: cu_seqlens.
using Bounds = std::vector<int64_t>;

struct Convolution {
  int64_t channels, width;
  Values x, weight, bias;  // bias may be empty
  bool silu;

  // One sequence: rows [begin, end) of x after `past` ([channels, width - 1]). Appends its outputs to y and returns
  // what the past then is.
  Values run(int64_t begin, int64_t end, const Values& past, Values* y) const;
};

void gating(const Values& a, const Values& b, const Values& A_log, const Values& dt_bias, Values* g, Values* beta);

// Inputs of the delta rule; a state is [value_heads, V, K].
struct DeltaRule {
  int64_t heads, value_heads, K, V;
  Values q, k, v, g, beta;
  double scale;
  bool l2norm;

  Values commit(int64_t begin, int64_t end, Values state, Values* o) const;  // appends to o, returns the final state
  void preview(int64_t begin, int64_t end, const Values& state, clover::Read read, Values* o) const;

 private:
  Values normalized(const Values& x, int64_t token, int64_t head) const;
  void step(int64_t token, Values* state) const;
  void read(int64_t token, const Values& state, double* o) const;  // adds
};

Values rms_norm_gated(const Values& x, const Values& weight, const Values& z, double eps);

struct Routes {
  std::vector<int64_t> ids;
  Values weights;
};

// Top-k of one row among the experts that `kept` allows.
Routes top_k(const Values& logits, const std::vector<bool>& kept, int64_t k, bool renormalize);

// Which experts a block keeps, from the logits of its live tokens.
std::vector<bool> coreset(const std::vector<Values>& live_logits, int64_t experts, int64_t k, int64_t budget,
                          clover::Mode mode, double top_p);

// One expert, w13 [2 I, D] and w2 [D, I], at the given offsets; times `factor`, added to y.
void expert(const double* x, const double* w13, const double* w2, int64_t D, int64_t I, double factor, double* y);

}  // namespace reference
