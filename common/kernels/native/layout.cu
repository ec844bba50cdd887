// rearrange and cast. A thread moves one item at a time: an element, or a group where rows are dense and aligned.
#include "layout.h"
#include "portable.cuh"

namespace clover::native {
namespace {

struct Offsets {
  int64_t from, to;
};

template <class Index>
__device__ __forceinline__ Offsets offsets_of(const CopyParams& p, Index item) {
  Offsets offsets{0, 0};
  for (int i = p.axes - 1; i > 0; --i) {
    const Index size = static_cast<Index>(p.axis[i].size);
    const Index rest = item / size;
    const int64_t index = item - rest * size;
    offsets.from += index * p.axis[i].from;
    offsets.to += index * p.axis[i].to;
    item = rest;
  }
  offsets.from += static_cast<int64_t>(item) * p.axis[0].from;
  offsets.to += static_cast<int64_t>(item) * p.axis[0].to;
  return offsets;
}

__device__ __forceinline__ Offsets offsets_of(const CopyParams& p, int64_t item) {
  return p.small ? offsets_of<uint32_t>(p, static_cast<uint32_t>(item)) : offsets_of<int64_t>(p, item);
}

template <class Item>
__device__ __forceinline__ void rearrange(const CopyParams& p) {
  for (int64_t item = grid_thread(); item < p.count; item += grid_threads()) {
    const Offsets at = offsets_of(p, item);
    static_cast<Item*>(p.dst)[at.to] = static_cast<const Item*>(p.src)[at.from];
  }
}

template <class From, class To, int kGroup>
__device__ __forceinline__ void cast(const CopyParams& p) {
  for (int64_t item = grid_thread(); item < p.count; item += grid_threads()) {
    const Offsets at = offsets_of(p, item);
    float values[kGroup];
    load_floats(static_cast<const From*>(p.src) + at.from, values);
    store_floats(static_cast<To*>(p.dst) + at.to, values);
  }
}

}  // namespace
}  // namespace clover::native

#define CLOVER_REARRANGE(bytes, Item)                                            \
  CLOVER_KERNEL(clover_portable_rearrange_##bytes, clover::native::CopyParams) { \
    clover::native::rearrange<Item>(params);                                     \
  }
CLOVER_REARRANGE(1, uint8_t)
CLOVER_REARRANGE(2, uint16_t)
CLOVER_REARRANGE(4, uint32_t)
CLOVER_REARRANGE(8, uint64_t)
CLOVER_REARRANGE(16, uint4)

#define CLOVER_CAST(from, From, to, To)                                                \
  CLOVER_KERNEL(clover_portable_cast_##from##_##to, clover::native::CopyParams) {      \
    clover::native::cast<From, To, 1>(params);                                         \
  }                                                                                    \
  CLOVER_KERNEL(clover_portable_cast_##from##_##to##_x8, clover::native::CopyParams) { \
    clover::native::cast<From, To, clover::native::kCastGroup>(params);                \
  }
CLOVER_CAST(f32, float, bf16, clover::native::Bf16)
CLOVER_CAST(f32, float, f16, clover::native::Fp16)
CLOVER_CAST(bf16, clover::native::Bf16, f32, float)
CLOVER_CAST(bf16, clover::native::Bf16, f16, clover::native::Fp16)
CLOVER_CAST(f16, clover::native::Fp16, f32, float)
CLOVER_CAST(f16, clover::native::Fp16, bf16, clover::native::Bf16)
