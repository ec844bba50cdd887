#include "case.hpp"

#include <algorithm>
#include <cmath>

#include "check.hpp"

namespace operators {

Tensor& Case::add(DType dtype, const Shape& shape, bool written) {
  tensors_.push_back({Tensor(dtype, shape, device_), written});
  return tensors_.back().tensor;
}

Tensor& Case::random(DType dtype, const Shape& shape, double low, double high) {
  Tensor& tensor = input(dtype, shape);
  tensor.randomize(number() * 100 + static_cast<uint32_t>(tensors_.size()), low, high);
  return tensor;
}

Tensor& Case::indices(std::initializer_list<double> values) {
  Tensor& tensor = input(DType::kInt32, {static_cast<int64_t>(values.size())});
  tensor.set_all(values);
  return tensor;
}

void Case::save() {
  for (Owned& owned : tensors_) owned.tensor.save();
}

void Case::restore() {
  for (Owned& owned : tensors_) owned.tensor.restore();
}

bool Case::unchanged() const {
  return std::all_of(tensors_.begin(), tensors_.end(), [](const Owned& owned) { return owned.tensor.unchanged(); });
}

void Case::check_surroundings() const {
  for (const Owned& owned : tensors_) {
    CHECK(owned.tensor.guards_intact());
    if (!owned.written) CHECK(owned.tensor.unchanged());
  }
}

std::vector<std::string> Case::results() const {
  std::vector<std::string> all;
  for (const Owned& owned : tensors_)
    if (owned.written) all.push_back(owned.tensor.bits());
  return all;
}

void Case::hide_data(bool hide) {
  for (Owned& owned : tensors_) owned.tensor.hide_data(hide);
}

void check_close(const Tensor& actual, const std::vector<double>& expected, const Bound& bound) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = actual.at(static_cast<int64_t>(i)) - expected[i];
    difference += error * error;
    norm += expected[i] * expected[i];
  }
  const double relative = std::sqrt(difference / norm);
  const double allowed = actual.dtype() == DType::kBFloat16  ? bound.bfloat16
                         : actual.dtype() == DType::kFloat16 ? bound.float16
                                                             : bound.float32;
  CHECK(norm > 0);
  if (!(relative <= 2 * allowed)) check::equal(relative, 2 * allowed, "relative error", __FILE__, __LINE__);
  CHECK(actual.unchanged_from(static_cast<int64_t>(expected.size())));
}

void check_equal(const Tensor& actual, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = actual.at(static_cast<int64_t>(i));
    if (value != expected[i]) check::equal(value, expected[i], "element", __FILE__, __LINE__);
  }
  CHECK(actual.unchanged_from(static_cast<int64_t>(expected.size())));
}

std::vector<CasePointer> all_cases(DType x_type, Device device) {
  std::vector<CasePointer> cases;
  add_convolution_cases(x_type, device, &cases);
  add_delta_cases(x_type, device, &cases);
  add_routing_cases(x_type, device, &cases);
  add_expert_cases(x_type, device, &cases);
  add_layout_cases(x_type, device, &cases);
  for (const CasePointer& c : cases) c->save();
  return cases;
}

}  // namespace operators
