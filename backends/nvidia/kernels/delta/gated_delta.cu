// gated_delta_rule: commits of any length by exact replay (replay.cuh).
#include "backends/nvidia/kernels/delta/replay.cuh"

namespace clover::delta {
namespace {
using kFloat32 = float;
using kBFloat16 = __nv_bfloat16;
using kFloat16 = __half;
}  // namespace
}  // namespace clover::delta

#define CLOVER_REPLAY_KERNEL(dtype, tag, key_dim, rows)                                                           \
  extern "C" __global__ void __launch_bounds__(32 * clover::nvidia::gated_delta_detail::kReplayWarps,             \
                                               (rows) == 1 ? 8 : 4)                                               \
      clover_gated_delta_replay_##tag##_k##key_dim##_r##rows(                                                     \
          const __grid_constant__ clover::nvidia::GatedDeltaParams params) {                                      \
    clover::delta::replay<clover::delta::dtype, key_dim, rows, clover::nvidia::gated_delta_detail::kReplayWarps>( \
        params);                                                                                                  \
  }
CLOVER_REPLAY_KERNELS(CLOVER_REPLAY_KERNEL)

#define CLOVER_AHEAD_KERNEL(dtype, tag, key_dim)                                                                     \
  extern "C" __global__ void __launch_bounds__(32 * clover::nvidia::gated_delta_detail::kReplayWarps,                \
                                               clover::nvidia::gated_delta_detail::kAheadBlocks)                     \
      clover_gated_delta_ahead_##tag##_k##key_dim(const __grid_constant__ clover::nvidia::GatedDeltaParams params) { \
    clover::delta::replay_ahead<clover::delta::dtype, key_dim>(params);                                              \
  }
CLOVER_AHEAD_KERNELS(CLOVER_AHEAD_KERNEL)
