// Tensors of the C ABI as planners take them: an address and strides in elements.
#pragma once

#include <clover/abi.h>

#include "common/kernels/native/launch.h"

namespace clover::device {

// An axis of one element may carry any stride; here it has the one that a contiguous tensor would have, so that a
// planner may test strides for alignment. An absent tensor is all zeros.
template <int kRank>
struct View {
  void* data = nullptr;
  int64_t size[kRank] = {};
  int64_t stride[kRank] = {};

  View() = default;
  explicit View(const clover_tensor* tensor) {
    if (tensor == nullptr) return;
    if (tensor->data != nullptr) data = static_cast<char*>(tensor->data) + tensor->byte_offset;
    int64_t contiguous = 1;
    for (int axis = kRank - 1; axis >= 0; --axis) {
      size[axis] = tensor->shape[axis];
      const bool given = tensor->strides != nullptr && size[axis] > 1;
      stride[axis] = given ? tensor->strides[axis] : contiguous;
      contiguous = stride[axis] * size[axis];
    }
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

template <int kRank>
View<kRank> view(const clover_tensor* tensor) {
  return View<kRank>(tensor);
}

// Of BF16, FP16 and FP32 tensors; the core lets no other one through.
inline native::DType dtype_of(const clover_tensor* tensor) {
  if (tensor->dtype.code == CLOVER_BFLOAT) return native::DType::kBFloat16;
  return tensor->dtype.bits == 16 ? native::DType::kFloat16 : native::DType::kFloat32;
}

}  // namespace clover::device
