// The portable kernels of common/kernels/native as providers, behind what a backend has tuned for its own devices.
#include "common/device/provider.hpp"
#include "common/kernels/native/operators.hpp"

#define CLOVER_PORTABLE(op_name, Operator) \
  CLOVER_PLANNED_PROVIDER(op_name, 1, "native-portable", ::clover::native::operators::Operator)

CLOVER_PORTABLE(causal_conv1d, CausalConv1d);
CLOVER_PORTABLE(preview_conv1d, PreviewConv1d);
CLOVER_PORTABLE(gated_delta_net_gating, GatedDeltaNetGating);
CLOVER_PORTABLE(gated_delta_rule, GatedDeltaRule);
CLOVER_PORTABLE(preview_gated_delta_rule, PreviewGatedDeltaRule);
CLOVER_PORTABLE(preview_gdn, PreviewGdn);
CLOVER_PORTABLE(topk_softmax, TopkSoftmax);
CLOVER_PORTABLE(block_coreset, BlockCoreset);
CLOVER_PORTABLE(live_row_routes, LiveRowRoutes);
CLOVER_PORTABLE(merge_live_rows, MergeLiveRows);
CLOVER_PORTABLE(fused_moe, FusedMoe);
CLOVER_PORTABLE(rotary_embedding, RotaryEmbedding);
CLOVER_PORTABLE(rearrange, Rearrange);
CLOVER_PORTABLE(cast, Cast);
CLOVER_PORTABLE(rms_norm_gated, RmsNormGated);
