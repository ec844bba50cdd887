// rearrange and cast. A thread moves one item at a time: an element, or a group where rows are dense and aligned. What
// is transposed goes through shared memory, so that both sides are met in rows.
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

// kSide neighbouring elements, moved as one.
template <class Item, int kSide>
struct alignas(sizeof(Item) * kSide) Strip {
  Item at[kSide];
};

// A thread reads the patch (i, j) of a tile, kSide strips of src, turns it over in registers, and leaves it in shared
// memory as kSide strips of dst; the thread (i, j) then writes the strip i of the rows j. In a row of the tile the
// strips lie in an order of its own, so that neighbouring threads meet different banks.
template <class Item, int kSide>
__device__ __forceinline__ void transpose(const TransposeParams& p) {
  using Run = Strip<Item, kSide>;
  CLOVER_SHARED(Run, tile, kTileSide * kTileSide * kSide);
  const int i = static_cast<int>(threadIdx.x) / kTileSide, j = static_cast<int>(threadIdx.x) % kTileSide;
  const int last = p.copy.axes - 1;
  const CopyAxis to = p.copy.axis[last], from = p.copy.axis[last - 1];
  for (int64_t item = blockIdx.x; item < p.copy.count; item += gridDim.x) {
    int64_t rest = quotient(item, p.tiles_to);
    const int64_t tile_to = (item - rest * p.tiles_to) * (kTileSide * kSide);
    int64_t outer = quotient(rest, p.tiles_from);
    const int64_t tile_from = (rest - outer * p.tiles_from) * (kTileSide * kSide);
    Offsets base{0, 0};
    for (int axis = last - 2; axis >= 0; --axis) {
      rest = quotient(outer, p.copy.axis[axis].size);
      const int64_t index = outer - rest * p.copy.axis[axis].size;
      base.from += index * p.copy.axis[axis].from;
      base.to += index * p.copy.axis[axis].to;
      outer = rest;
    }
    const Item* src = static_cast<const Item*>(p.copy.src) + base.from;
    Item* dst = static_cast<Item*>(p.copy.dst) + base.to;

    const int64_t read_to = tile_to + i * kSide, read_from = tile_from + j * kSide;
    Run patch[kSide] = {};
    if (read_to < to.size && read_from < from.size) {
#pragma unroll
      for (int s = 0; s < kSide; ++s)
        patch[s] = *reinterpret_cast<const Run*>(src + (read_to + s) * to.from + read_from);
    }
#pragma unroll
    for (int s = 0; s < kSide; ++s) {
      Run turned;
#pragma unroll
      for (int r = 0; r < kSide; ++r) turned.at[r] = patch[r].at[s];
      tile[(j * kSide + s) * kTileSide + (i ^ j)] = turned;
    }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < kSide; ++s) {
      const int row = s * kTileSide + i;  // neighbouring threads write neighbouring strips
      const int64_t write_from = tile_from + row, write_to = tile_to + j * kSide;
      if (write_from < from.size && write_to < to.size)
        *reinterpret_cast<Run*>(dst + write_from * from.to + write_to) = tile[row * kTileSide + (j ^ (row / kSide))];
    }
    __syncthreads();
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

#define CLOVER_TRANSPOSE(bytes, Item, side)                                                     \
  CLOVER_KERNEL(clover_portable_transpose_##bytes, clover::native::TransposeParams) {           \
    clover::native::transpose<Item, 1>(params);                                                 \
  }                                                                                             \
  CLOVER_KERNEL(clover_portable_transpose_##bytes##_x##side, clover::native::TransposeParams) { \
    clover::native::transpose<Item, side>(params);                                              \
  }
CLOVER_TRANSPOSE(1, uint8_t, 4)
CLOVER_TRANSPOSE(2, uint16_t, 4)
CLOVER_TRANSPOSE(4, uint32_t, 4)
CLOVER_TRANSPOSE(8, uint64_t, 2)

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
