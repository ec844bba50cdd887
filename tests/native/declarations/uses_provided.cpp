// What the toy backend provides is declared, and the queries always are.
#include <clover/ops.h>

static_assert(CLOVER_OPS_DECLARE_REARRANGE == 1 && CLOVER_OPS_DECLARE_FUSED_MOE == 0);

auto* const provided = &clover::rearrange;
auto* const query = &clover::supports;
constexpr auto kNumber = clover::Op::kFusedMoe;
