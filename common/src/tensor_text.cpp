#include "tensor_text.hpp"

#include "spec.hpp"

namespace clover {

std::string dtype_text(clover_dtype dtype) {
  static constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  std::string text = dtype.code < 7 ? kNames[dtype.code] : "dtype" + std::to_string(dtype.code) + "_";
  if (dtype.code != CLOVER_BOOL || dtype.bits != 8) text += std::to_string(dtype.bits);
  if (dtype.lanes != 1) text += "x" + std::to_string(dtype.lanes);
  return text;
}

const char* device_type_name(int32_t device_type) {
  switch (device_type) {
    case CLOVER_CPU:
      return "cpu";
    case CLOVER_CUDA:
      return "cuda";
    case CLOVER_ROCM:
      return "rocm";
    default:
      return "device";
  }
}

std::string device_text(int32_t device_type, int32_t device_id) {
  if (device_type == CLOVER_CPU && device_id == 0) return "cpu";
  const std::string name = device_type_name(device_type);
  return (name == "device" ? name + "(" + std::to_string(device_type) + ")" : name) + ":" + std::to_string(device_id);
}

std::string shape_text(const int64_t* shape, int32_t rank) {
  std::string text = "[";
  for (int32_t i = 0; i < rank; ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

int64_t stride_of(const clover_tensor& tensor, int32_t axis) {
  if (tensor.strides != nullptr) return tensor.strides[axis];
  int64_t stride = 1;
  for (int32_t i = tensor.ndim - 1; i > axis; --i) stride = sat::mul(stride, tensor.shape[i]);
  return stride;
}

std::string strides_text(const clover_tensor& tensor) {
  std::string text = "[";
  for (int32_t i = 0; i < tensor.ndim; ++i) text += (i ? ", " : "") + std::to_string(stride_of(tensor, i));
  return text + "]";
}

}  // namespace clover
