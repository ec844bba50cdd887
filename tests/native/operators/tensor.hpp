// A small tensor that owns its memory: read and written as doubles whatever its dtype, with guards around the data and
// a copy of what was in it before a call.
#pragma once

#include <clover/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace operators {

using clover::Device;
using clover::DType;
using clover::TensorView;

const char* dtype_name(DType dtype);

// What is nearest to `value` in a floating-point type, ties to even.
double round_to(DType dtype, double value);

class Tensor {
 public:
  Tensor(DType dtype, std::vector<int64_t> shape, Device device);

  int64_t count() const { return count_; }
  int64_t size(int axis) const { return shape_[axis]; }
  DType dtype() const { return dtype_; }

  double at(int64_t i) const { return decode(payload() + i * item_); }
  double before(int64_t i) const { return decode(saved_.data() + i * item_); }
  std::vector<double> all_before() const;
  void set(int64_t i, double value);
  void set_all(std::initializer_list<double> values);

  // Same shape each time: uniform in [low, high).
  void randomize(uint32_t seed, double low, double high);

  TensorView view() const { return TensorView(pointer(), dtype_, shape_, device_); }
  TensorView view(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, int64_t offset) const {
    return TensorView(static_cast<const char*>(pointer()) + offset * item_, dtype_, shape, strides, device_);
  }

  void save() { saved_.assign(payload(), payload() + count_ * item_); }
  void restore();
  bool unchanged() const { return unchanged_from(0); }
  bool unchanged_from(int64_t first) const;  // elements first, first + 1, ... are what they were, bit for bit
  bool guards_intact() const;
  std::string bits() const { return std::string(payload(), payload() + count_ * item_); }

  // Views without a data pointer, for queries that may not look at data.
  void hide_data(bool hide) { hidden_ = hide; }

 private:
  unsigned char* payload() { return memory_.data() + kGuard; }
  const unsigned char* payload() const { return memory_.data() + kGuard; }
  const void* pointer() const { return hidden_ ? nullptr : payload(); }
  double decode(const unsigned char* bytes) const;

  static constexpr int64_t kGuard = 64;

  DType dtype_;
  std::vector<int64_t> shape_;
  Device device_;
  int64_t item_;
  int64_t count_;
  bool hidden_ = false;
  std::vector<unsigned char> memory_;
  std::vector<unsigned char> saved_;
};

}  // namespace operators
