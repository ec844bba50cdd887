// gated_delta_rule in chunks: one launch solves all chunks' systems, a second carries the states through them.
#include "delta_rule.hpp"

namespace clover::jit {
namespace {

struct GatedDeltaRule {
  static const char* plan(Triton& triton, const clover_gated_delta_rule_args& a, const clover_gated_delta_rule_dims& d,
                          Plan* plan) {
    if (a.max_seqlen <= kDeltaShort) return "max_seqlen is 64 or less: short sequences are left to native providers";
    if (const char* why = delta_limits(d)) return why;
    const DeltaTensors t(a);
    const char* data = data_name(a.q);
    const auto group = static_cast<int32_t>(d.HV / d.H), tokens = static_cast<int32_t>(d.T);
    const auto scale = static_cast<float>(a.scale);
    const auto fix = [&](Launch& launch) -> Launch& {
      return launch.set("K", d.K)
          .set("BK", power_of_two(d.K))
          .set("SHORT", kDeltaShort)
          .set_flag("L2NORM", a.l2norm != 0)
          .set("PRECISION", delta_precision(data));
    };

    Launch& prepare = fix(plan->add("gated_delta_chunk_prepare", data));
    prepare.configure(triton.tuned());
    const int64_t chunk = prepare["C"], chunks = d.T / chunk + d.N, cells = chunks * d.HV;
    float* const solve = plan->reserve<float>(cells * chunk * chunk);
    float* const attend = plan->reserve<float>(cells * chunk * chunk);
    float* const factors = plan->reserve<float>(cells * 4 * chunk);
    prepare.grid[0] = static_cast<uint32_t>(chunks);
    prepare.grid[1] = static_cast<uint32_t>(d.HV);
    prepare.pass(t.q.data).pass(t.k.data).pass(t.g.data).pass(t.beta.data).pass(t.cu_seqlens.data);
    prepare.pass(solve).pass(attend).pass(factors);
    for (const auto* view : {&t.q, &t.k}) t.pass_token_and_head(&prepare, *view);
    for (const auto* view : {&t.g, &t.beta}) t.pass_token_and_head(&prepare, *view);
    prepare.pass(tokens).pass(static_cast<int32_t>(d.N)).pass(group).pass(scale);

    Launch& advance = fix(plan->add("gated_delta_chunk_advance", data)).set("V", d.V).set("C", chunk);
    advance.configure(triton.tuned());
    advance.grid[0] = static_cast<uint32_t>(ceil_div(d.V, advance["BV"]));
    advance.grid[1] = static_cast<uint32_t>(d.HV);
    advance.grid[2] = static_cast<uint32_t>(d.N);
    advance.pass(t.q.data).pass(t.k.data).pass(t.v.data).pass(t.g.data).pass(t.beta.data).pass(t.o.data);
    advance.pass(t.state.data).pass(t.cu_seqlens.data).pass(t.initial.data);
    advance.pass(device::view<1>(a.final_state_indices).data).pass(solve).pass(attend).pass(factors);
    for (const auto* view : {&t.q, &t.k, &t.v}) t.pass_token_and_head(&advance, *view);
    for (const auto* view : {&t.g, &t.beta}) t.pass_token_and_head(&advance, *view);
    t.pass_token_and_head(&advance, t.o);
    t.pass_state(&advance);
    advance.pass(tokens).pass(static_cast<int32_t>(d.S)).pass(group).pass(scale);
    return nullptr;
  }
};

}  // namespace
}  // namespace clover::jit

CLOVER_TRITON_PROVIDER(gated_delta_rule, clover::jit::GatedDeltaRule);
