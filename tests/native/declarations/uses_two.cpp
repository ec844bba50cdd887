// Names an operator that the toy backend provides and one that it does not.
#include <clover/ops.h>

auto* const provided = &clover::rearrange;
auto* const not_provided = &clover::fused_moe;
