// The streaming kernels: one for each 16-bit type and each length of the ring that a card's shared memory allows.
#include "backends/nvidia/kernels/moe/moe_stream.cuh"

namespace clover::nvidia::moe {

#define CLOVER_STREAM(name, T, ring)                                                                          \
  extern "C" __global__ void __launch_bounds__(kStreamThreads, 1) name(const __grid_constant__ MoeParams p) { \
    stream<T, ring>(p);                                                                                       \
  }
CLOVER_STREAM(clover_moe_stream_bf16_2, __nv_bfloat16, 2)
CLOVER_STREAM(clover_moe_stream_bf16_4, __nv_bfloat16, 4)
CLOVER_STREAM(clover_moe_stream_bf16_6, __nv_bfloat16, 6)
CLOVER_STREAM(clover_moe_stream_f16_2, __half, 2)
CLOVER_STREAM(clover_moe_stream_f16_4, __half, 4)
CLOVER_STREAM(clover_moe_stream_f16_6, __half, 6)
#undef CLOVER_STREAM

}  // namespace clover::nvidia::moe
