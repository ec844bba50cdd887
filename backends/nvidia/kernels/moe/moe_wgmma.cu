// The grouped products on Hopper's wgmma. Compiles for sm_90a only.
//   64    up to 64 tokens per entry, where the weights' stream is what counts: a deep ring for w13; for w2, whose jobs
//         are short, two blocks a multiprocessor, so that one multiplies while the other stores
//   192   up to 192 tokens and 256 rows, where arithmetic and the reuse of what is read count
#include "backends/nvidia/kernels/moe/moe_tile.cuh"

namespace clover::nvidia::moe {

#define CLOVER_WGMMA(name, T, threads, blocks, tokens, stages, overlap, down)                               \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ MoeParams p) { \
    multiply_tiles<T, threads, tokens, stages, true, overlap, down>(p);                                     \
  }
CLOVER_WGMMA(clover_moe_wgmma64_up_bf16, __nv_bfloat16, 256, 1, 64, 8, true, false)
CLOVER_WGMMA(clover_moe_wgmma64_down_bf16, __nv_bfloat16, 256, 2, 64, 4, false, true)
CLOVER_WGMMA(clover_moe_wgmma64_up_f16, __half, 256, 1, 64, 8, true, false)
CLOVER_WGMMA(clover_moe_wgmma64_down_f16, __half, 256, 2, 64, 4, false, true)
CLOVER_WGMMA(clover_moe_wgmma192_up_bf16, __nv_bfloat16, 512, 1, 192, 4, true, false)
CLOVER_WGMMA(clover_moe_wgmma192_down_bf16, __nv_bfloat16, 512, 1, 192, 4, true, true)
CLOVER_WGMMA(clover_moe_wgmma192_up_f16, __half, 512, 1, 192, 4, true, false)
CLOVER_WGMMA(clover_moe_wgmma192_down_f16, __half, 512, 1, 192, 4, true, true)
#undef CLOVER_WGMMA

}  // namespace clover::nvidia::moe
