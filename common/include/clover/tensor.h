// A view of somebody's tensor: pointer, dtype, device, shape and strides; it owns none of the data.
#pragma once

#include <clover/abi.h>

#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <vector>

namespace clover {

enum class DType { kBFloat16, kFloat16, kFloat32, kInt32, kInt64, kBool, kUInt8 };

struct Device {
  int32_t type = CLOVER_CPU;  // DLPack's number: CLOVER_CPU, CLOVER_CUDA, CLOVER_ROCM
  int32_t id = 0;
};

// Shares DLPack's DLTensor layout: a TensorView can be made from a DLTensor*, and abi() is one.
class TensorView {
 public:
  static constexpr int kMaxRank = 8;

  // Contiguous.
  TensorView(const void* data, DType dtype, std::initializer_list<int64_t> shape, Device device = {})
      : TensorView(data, dtype, shape.begin(), nullptr, shape.size(), device) {}
  TensorView(const void* data, DType dtype, const std::vector<int64_t>& shape, Device device = {})
      : TensorView(data, dtype, shape.data(), nullptr, shape.size(), device) {}

  // Strides in elements, one per axis.
  TensorView(const void* data, DType dtype, std::initializer_list<int64_t> shape,
             std::initializer_list<int64_t> strides, Device device = {})
      : TensorView(data, dtype, shape.begin(), strides.begin(), shape.size(), device) {}
  TensorView(const void* data, DType dtype, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
             Device device = {})
      : TensorView(data, dtype, shape.data(), strides.data(), shape.size(), device) {}

  // From a DLTensor, or anything with its layout.
  template <class Like, class = std::enable_if_t<sizeof(Like) == sizeof(clover_tensor) && std::is_class_v<Like> &&
                                                 !std::is_same_v<Like, TensorView>>>
  explicit TensorView(const Like* dl_tensor) {
    clover_tensor other;
    std::memcpy(&other, dl_tensor, sizeof(other));
    set(other);
  }

  TensorView(const TensorView& other) { set(other.tensor_); }
  TensorView& operator=(const TensorView& other) {
    if (this != &other) set(other.tensor_);
    return *this;
  }

  const clover_tensor* abi() const { return &tensor_; }
  int rank() const { return tensor_.ndim; }
  int64_t size(int axis) const { return shape_[axis]; }

 private:
  TensorView(const void* data, DType dtype, const int64_t* shape, const int64_t* strides, size_t rank, Device device) {
    clover_tensor t{};
    t.data = const_cast<void*>(data);
    t.device_type = device.type;
    t.device_id = device.id;
    t.ndim = static_cast<int32_t>(rank);
    t.dtype = abi_dtype(dtype);
    t.shape = shape;
    t.strides = strides;
    set(t);
  }

  // Keeps its own copy of shape and strides. A rank beyond kMaxRank is no operator's: it is kept as the rank alone,
  // with the caller's pointers, for the library to refuse.
  void set(const clover_tensor& t) {
    tensor_ = t;
    if (t.ndim < 0 || t.ndim > kMaxRank) return;
    for (int i = 0; i < t.ndim; ++i) shape_[i] = t.shape[i];
    tensor_.shape = shape_;
    if (t.strides == nullptr) return;
    for (int i = 0; i < t.ndim; ++i) strides_[i] = t.strides[i];
    tensor_.strides = strides_;
  }

  static clover_dtype abi_dtype(DType dtype) {
    switch (dtype) {
      case DType::kBFloat16:
        return {CLOVER_BFLOAT, 16, 1};
      case DType::kFloat16:
        return {CLOVER_FLOAT, 16, 1};
      case DType::kFloat32:
        return {CLOVER_FLOAT, 32, 1};
      case DType::kInt32:
        return {CLOVER_INT, 32, 1};
      case DType::kInt64:
        return {CLOVER_INT, 64, 1};
      case DType::kBool:
        return {CLOVER_BOOL, 8, 1};
      default:
        return {CLOVER_UINT, 8, 1};
    }
  }

  clover_tensor tensor_;
  int64_t shape_[kMaxRank];
  int64_t strides_[kMaxRank];
};

}  // namespace clover
