// The grouped products on mma.sync, for every card.
#include "backends/nvidia/kernels/moe/moe_tile.cuh"

namespace clover::nvidia::moe {

#define CLOVER_TILE(name, T, down)                                                                 \
  extern "C" __global__ void __launch_bounds__(256, 1) name(const __grid_constant__ MoeParams p) { \
    multiply_tiles<T, 256, 64, 4, false, false, down>(p);                                          \
  }
CLOVER_TILE(clover_moe_tile_up_bf16, __nv_bfloat16, false)
CLOVER_TILE(clover_moe_tile_down_bf16, __nv_bfloat16, true)
CLOVER_TILE(clover_moe_tile_up_f16, __half, false)
CLOVER_TILE(clover_moe_tile_down_f16, __half, true)
#undef CLOVER_TILE

}  // namespace clover::nvidia::moe
