// preview_gated_delta_rule: one launch, nothing written but the output. preview_block.cuh has the algorithm.
#include "backends/nvidia/kernels/delta/preview_block.cuh"
#include "backends/nvidia/kernels/delta/walk.cuh"

namespace clover::delta {
namespace {

template <class T, class Tile>
__device__ __forceinline__ void preview_block(const nvidia::PreviewDeltaParams& p) {
  const BlockWork work = find_work<Tile>(p);
  const int warp = threadIdx.x / 32;
  if (work.sequence.length == 0) return;
  if (work.sequence.length > Tile::kWidth) {  // the planner's hint was short
    for (int row = warp * kWalkRows; row < Tile::kRows; row += Tile::kWarps * kWalkRows) {
      walk_rows<T, Tile::kKeyDim>(p, work.sequence, work.head, work.first_row + row,
                                  Tile::state() + warp * kWalkSegment * kWalkRows);
    }
    return;
  }

  const Shape shape = shape_of(p.read);
  const int row = (warp - Tile::kFirstProductWarp) * 16;  // negative: not a product warp
  const float2 gates = request_gates(p, work);
  request_keys<T, Tile>(p, work);
  request_state<Tile>(p, work, row);
  request_values_of_rows<T, Tile>(p, work, row);
  if (threadIdx.x < Tile::kWidth) {
    Tile::g()[threadIdx.x] = gates.x;
    Tile::beta()[threadIdx.x] = gates.y;
  }
  ptx::copy_async_wait<2>();
  __syncthreads();
  fill_decays<Tile>();
  fill_norms<Tile>(p.l2norm);
  form_systems<Tile>(work.sequence.length, p.scale, shape);
  __syncthreads();
  solve_systems<Tile>(shape);
  ptx::copy_async_wait<0>();
  __syncwarp();
  float sums[2 * Tile::kWidth / 8][4];
  if (row >= 0) multiply_state<Tile>(row, sums);
  __syncthreads();
  if (row < 0) return;
  combine<Tile>(row, p.scale, shape, sums);
  T* out = static_cast<T*>(p.o) + work.sequence.first * p.o_token + work.head * p.o_head + work.first_row;
  store_outputs<T, Tile>(row, sums, out, p.o_token, work.sequence.length);
}

template <class T, int kKeyDim>
__device__ __forceinline__ void preview_walk(const nvidia::PreviewDeltaParams& p) {
  __shared__ float waiting[8][kWalkSegment * kWalkRows];
  const int warp = threadIdx.x / 32;
  const int row = blockIdx.x * 32 + warp * kWalkRows;
  const Sequence sequence = find_sequence(p.cu_seqlens, p.initial, blockIdx.z, p.tokens, p.slots);
  if (sequence.length == 0 || row >= p.value_dim) return;
  walk_rows<T, kKeyDim>(p, sequence, blockIdx.y, row, waiting[warp]);
}

using kFloat32 = float;
using kBFloat16 = __nv_bfloat16;
using kFloat16 = __half;

}  // namespace
}  // namespace clover::delta

#define CLOVER_BLOCK_KERNEL(dtype, tag, splits, key_dim, width, rows)                                           \
  extern "C" __global__ void __launch_bounds__(256, (width) == 64 ? 1 : 2)                                      \
      clover_preview_delta_##tag##_k##key_dim##_w##width##_v##rows(                                             \
          const __grid_constant__ clover::nvidia::PreviewDeltaParams params) {                                  \
    clover::delta::preview_block<clover::delta::dtype, clover::delta::BlockTile<key_dim, width, rows, splits>>( \
        params);                                                                                                \
  }
CLOVER_PREVIEW_BLOCK_KERNELS(CLOVER_BLOCK_KERNEL)

#define CLOVER_WALK_KERNEL(dtype, tag, key_dim)                                                   \
  extern "C" __global__ void __launch_bounds__(256) clover_preview_delta_walk_##tag##_k##key_dim( \
      const __grid_constant__ clover::nvidia::PreviewDeltaParams params) {                        \
    clover::delta::preview_walk<clover::delta::dtype, key_dim>(params);                           \
  }
CLOVER_WALK_KERNEL(kBFloat16, bf16, 64)
CLOVER_WALK_KERNEL(kBFloat16, bf16, 128)
CLOVER_WALK_KERNEL(kFloat16, fp16, 64)
CLOVER_WALK_KERNEL(kFloat16, fp16, 128)
CLOVER_WALK_KERNEL(kFloat32, fp32, 64)
CLOVER_WALK_KERNEL(kFloat32, fp32, 128)
