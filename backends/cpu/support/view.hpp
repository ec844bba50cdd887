// A tensor as kernels address it: typed, with its offset applied and its strides, in elements, at hand.
#pragma once

#include <clover/abi.h>
#include <stddef.h>
#include <stdint.h>

namespace clover::cpu::CLOVER_CPU_ISA {

template <class T>
inline T* data_of(const clover_tensor& tensor) {
  if (tensor.data == nullptr) return nullptr;
  return reinterpret_cast<T*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
}

inline void strides_of(const clover_tensor& tensor, int64_t* strides) {
  int64_t contiguous = 1;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    strides[axis] = tensor.strides == nullptr ? contiguous : tensor.strides[axis];
    contiguous *= tensor.shape[axis];
  }
}

template <class T, int kAxes>
struct View {
  T* data;
  int64_t strides[kAxes];

  explicit View(const clover_tensor& tensor) : data(data_of<T>(tensor)) { strides_of(tensor, strides); }

  // The element at these indices, or the first of the part that fewer of them choose.
  template <class... Index>
  T* at(Index... index) const {
    static_assert(sizeof...(index) <= kAxes, "more indices than axes");
    int axis = 0;
    int64_t offset = 0;
    ((offset += static_cast<int64_t>(index) * strides[axis++]), ...);
    return data + offset;
  }
};

inline int64_t minimum(int64_t a, int64_t b) {
  return a < b ? a : b;
}
inline int64_t maximum(int64_t a, int64_t b) {
  return a > b ? a : b;
}
inline int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline int64_t round_up(int64_t a, int64_t b) {
  return divide_up(a, b) * b;
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
