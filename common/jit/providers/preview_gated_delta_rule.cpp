// preview_gated_delta_rule in one launch: the state is read once, only the output is written.
#include "delta_rule.hpp"

namespace clover::jit {
namespace {

struct PreviewGatedDeltaRule {
  // READ in delta_rule.py numbers the ways to read as the schema does.
  static_assert(CLOVER_preview_gated_delta_rule_read_bidirectional == 0 &&
                CLOVER_preview_gated_delta_rule_read_block == 1 && CLOVER_preview_gated_delta_rule_read_causal == 2);

  static const char* plan(Triton& triton, const clover_preview_gated_delta_rule_args& a,
                          const clover_preview_gated_delta_rule_dims& d, Plan* plan) {
    // max_seqlen only guides; T alone bounds what a sequence may be.
    if (d.T > 64)
      return "there are more than 64 tokens: the kernel holds one sequence of up to 64, and T alone bounds it";
    if (const char* why = delta_limits(d)) return why;
    const DeltaTensors t(a);
    const char* data = data_name(a.q);
    Launch& launch = plan->add("preview_delta", data);
    launch.set("K", d.K).set("V", d.V).set("BK", power_of_two(d.K)).set("W", power_of_two(d.T));
    launch.set("READ", a.read).set_flag("L2NORM", a.l2norm != 0).set("PRECISION", delta_precision(data));
    launch.configure(triton.tuned());
    launch.grid[0] = static_cast<uint32_t>(ceil_div(d.V, launch["BV"]));
    launch.grid[1] = static_cast<uint32_t>(d.HV);
    launch.grid[2] = static_cast<uint32_t>(d.N);
    launch.pass(t.q.data).pass(t.k.data).pass(t.v.data).pass(t.g.data).pass(t.beta.data).pass(t.o.data);
    launch.pass(t.state.data).pass(t.cu_seqlens.data).pass(t.initial.data);
    for (const auto* view : {&t.q, &t.k, &t.v}) t.pass_token_and_head(&launch, *view);
    for (const auto* view : {&t.g, &t.beta}) t.pass_token_and_head(&launch, *view);
    t.pass_token_and_head(&launch, t.o);
    t.pass_state(&launch);
    launch.pass(static_cast<int32_t>(d.T)).pass(static_cast<int32_t>(d.S)).pass(static_cast<int32_t>(d.HV / d.H));
    launch.pass(static_cast<float>(a.scale));
    return nullptr;
  }
};

}  // namespace
}  // namespace clover::jit

CLOVER_TRITON_PROVIDER(preview_gated_delta_rule, clover::jit::PreviewGatedDeltaRule);
