#include "overlap.hpp"

#include <algorithm>
#include <cstdint>

#include "spec.hpp"
#include "tensor_text.hpp"

namespace clover {
namespace {

using Wide = __int128;

// No processor addresses more than 57 bits, so no tensor's steps along an axis lead further; products of them stay in
// range.
constexpr Wide kReach = Wide{1} << 57;

// Addresses of two tensors meet where  sum_k stride_k * d_k  lies in a window, each d_k in an interval. Terms with one
// stride are merged, so two interleaved tensors have a term per nesting level and the search below visits a handful of
// nodes. It is exact; only when a contrived layout exhausts the work limit does it answer "may overlap".
struct Term {
  Wide stride;  // > 0, in bytes
  Wide low;     // interval of d
  Wide high;
};

struct Problem {
  Term terms[2 * kMaxRank];
  int count = 0;
  int budget = 20000;

  void add(Wide stride, Wide low, Wide high) {
    if (stride < 0) {
      stride = -stride;
      std::swap(low, high);
      low = -low;
      high = -high;
    }
    if (stride == 0 || (low == 0 && high == 0)) return;
    for (int i = 0; i < count; ++i) {
      if (terms[i].stride == stride) {
        terms[i].low += low;
        terms[i].high += high;
        return;
      }
    }
    terms[count++] = {stride, low, high};
  }

  // Largest stride first; a dozen terms at most, so insertion does.
  void sort() {
    for (int i = 1; i < count; ++i)
      for (int j = i; j > 0 && terms[j].stride > terms[j - 1].stride; --j) std::swap(terms[j], terms[j - 1]);
  }

  // Is there a solution with target_low <= sum <= target_high? With `nonzero`, one in which some d_k differs from 0.
  bool solvable(int level, Wide target_low, Wide target_high, bool nonzero) {
    if (--budget < 0) return true;
    if (level == count) return !nonzero && target_low <= 0 && 0 <= target_high;
    Wide rest_low = 0, rest_high = 0;
    for (int i = level + 1; i < count; ++i) {
      rest_low += terms[i].stride * terms[i].low;
      rest_high += terms[i].stride * terms[i].high;
    }
    const Term& term = terms[level];
    const Wide first = std::max(term.low, ceil_div(target_low - rest_high, term.stride));
    const Wide last = std::min(term.high, floor_div(target_high - rest_low, term.stride));
    for (Wide d = first; d <= last; ++d) {
      const Wide done = d * term.stride;
      if (solvable(level + 1, target_low - done, target_high - done, nonzero && d == 0)) return true;
    }
    return false;
  }

  static Wide floor_div(Wide a, Wide b) { return a / b - ((a % b != 0) && (a < 0)); }
  static Wide ceil_div(Wide a, Wide b) { return -floor_div(-a, b); }
};

}  // namespace

bool byte_range(const clover_tensor& tensor, ByteRange* range) {
  const Wide item = item_bytes(tensor.dtype);
  Wide low = 0, high = 0;
  int64_t contiguous = 1;  // the stride of this axis where none are given
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    const Wide steps = Wide(tensor.shape[i] - 1) * (tensor.strides != nullptr ? tensor.strides[i] : contiguous);
    if (steps > kReach || steps < -kReach) return false;
    (steps < 0 ? low : high) += steps * item;
    contiguous = sat::mul(contiguous, tensor.shape[i]);
  }
  const Wide base = Wide(reinterpret_cast<uintptr_t>(tensor.data)) + tensor.byte_offset;
  if (base + low < 0 || base + high + item > Wide(INT64_MAX)) return false;
  *range = {static_cast<uintptr_t>(base + low), static_cast<uintptr_t>(base + high + item)};
  return true;
}

bool may_overlap(const clover_tensor& a, const clover_tensor& b) {
  if (is_empty(a) || is_empty(b)) return false;
  ByteRange a_range, b_range;
  if (!byte_range(a, &a_range) || !byte_range(b, &b_range)) return true;
  if (!a_range.meets(b_range)) return false;
  const Wide a_item = item_bytes(a.dtype), b_item = item_bytes(b.dtype);
  Problem problem;
  for (int32_t i = 0; i < a.ndim; ++i) problem.add(Wide(stride_of(a, i)) * a_item, 0, a.shape[i] - 1);
  for (int32_t i = 0; i < b.ndim; ++i) problem.add(Wide(stride_of(b, i)) * b_item, -Wide(b.shape[i] - 1), 0);
  problem.sort();
  const Wide distance = (Wide(reinterpret_cast<uintptr_t>(b.data)) + b.byte_offset) -
                        (Wide(reinterpret_cast<uintptr_t>(a.data)) + a.byte_offset);
  return problem.solvable(0, distance - (a_item - 1), distance + (b_item - 1), false);
}

bool may_overlap_itself(const clover_tensor& tensor) {
  if (is_empty(tensor)) return false;
  const Wide item = item_bytes(tensor.dtype);
  Problem problem;
  int axes = 0;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 1) continue;
    const Wide stride = Wide(stride_of(tensor, i)) * item;
    if (stride == 0) return true;
    problem.add(stride, -Wide(tensor.shape[i] - 1), tensor.shape[i] - 1);
    ++axes;
  }
  if (problem.count < axes) return true;  // two axes with one stride: a step along either reaches the same element
  problem.sort();
  Wide covered = item;  // bytes spanned by the smaller axes: nested axes step over all of them
  bool nested = true;
  for (int i = problem.count - 1; i >= 0 && nested; --i) {
    nested = problem.terms[i].stride >= covered;
    covered += problem.terms[i].stride * problem.terms[i].high;
  }
  return !nested && problem.solvable(0, -(item - 1), item - 1, true);
}

}  // namespace clover
