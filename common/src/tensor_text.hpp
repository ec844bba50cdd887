// How tensors are written in messages, and the few facts about them that several checks need.
#pragma once

#include <clover/abi.h>

#include <cstdint>
#include <string>

namespace clover {

std::string dtype_text(clover_dtype dtype);                       // "bfloat16"
std::string device_text(int32_t device_type, int32_t device_id);  // "cuda:0"
std::string shape_text(const int64_t* shape, int32_t rank);       // "[2, 3]"
std::string strides_text(const clover_tensor& tensor);
const char* device_type_name(int32_t device_type);

inline int64_t item_bytes(clover_dtype dtype) {
  return (static_cast<int64_t>(dtype.bits) * dtype.lanes + 7) / 8;
}

inline bool is_empty(const clover_tensor& tensor) {
  for (int32_t i = 0; i < tensor.ndim; ++i)
    if (tensor.shape[i] == 0) return true;
  return false;
}

// Stride of an axis in elements; null strides mean contiguous.
int64_t stride_of(const clover_tensor& tensor, int32_t axis);

}  // namespace clover
