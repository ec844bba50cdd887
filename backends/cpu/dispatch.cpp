// The providers: each hands its call to the chosen variant of the kernels.
#include <clover/provider.hpp>

#include "isa.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace clover::cpu {
namespace {

// A caller's thread may flush subnormals or round otherwise; results must not depend on whose thread computes them. The
// pool's threads are started within such a scope and inherit its settings.
class DefaultFloatEnvironment {
 public:
#if defined(__SSE2__)
  DefaultFloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~DefaultFloatEnvironment() { _mm_setcsr(saved_); }

 private:
  static constexpr unsigned kDefault = 0x1F80;  // every exception masked, nearest even, subnormals kept
  unsigned saved_;
#elif defined(__aarch64__)
  DefaultFloatEnvironment() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
    __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~DefaultFloatEnvironment() { __asm__ volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  uint64_t saved_;
#else
  DefaultFloatEnvironment() {}
  ~DefaultFloatEnvironment() {}
#endif
};

template <class Args, class Dims>
int32_t accept(const clover_call& call, const Args&, const Dims&) {
  if (selection().kernels != nullptr) return 1;
  return refuse(call, 0, "%s", selection().error);
}

template <auto kernel, class Args, class Dims>
int32_t run(const clover_call& call, const Args& args, const Dims& dims) {
  const Kernels* kernels = selection().kernels;
  if (kernels == nullptr) return refuse(call, CLOVER_UNSUPPORTED, "%s", selection().error);
  const DefaultFloatEnvironment environment;
  (kernels->*kernel)(call, args, dims);
  return CLOVER_OK;
}

template <auto kernel, class Args, class Dims>
uint64_t workspace(const clover_call&, const Args& args, const Dims& dims) {
  const Kernels* kernels = selection().kernels;
  return kernels == nullptr ? 0 : (kernels->*kernel)(args, dims);
}

}  // namespace
}  // namespace clover::cpu

#define CLOVER_CPU_TYPES(op) clover_##op##_args, clover_##op##_dims
#define CLOVER_CPU_RUN(op) (clover::cpu::run<&clover::cpu::Kernels::op, CLOVER_CPU_TYPES(op)>)
#define CLOVER_CPU_WORKSPACE(op) (clover::cpu::workspace<&clover::cpu::Kernels::op##_workspace, CLOVER_CPU_TYPES(op)>)
#define CLOVER_CPU_ACCEPT(op) (clover::cpu::accept<CLOVER_CPU_TYPES(op)>)
#define CLOVER_CPU_PLAIN(op) CLOVER_PROVIDER(op, 0, "native", CLOVER_CPU_ACCEPT(op), nullptr, CLOVER_CPU_RUN(op))
#define CLOVER_CPU_SCRATCH(op) \
  CLOVER_PROVIDER(op, 0, "native", CLOVER_CPU_ACCEPT(op), CLOVER_CPU_WORKSPACE(op), CLOVER_CPU_RUN(op))

CLOVER_CPU_PLAIN(causal_conv1d);
CLOVER_CPU_PLAIN(preview_conv1d);
CLOVER_CPU_PLAIN(gated_delta_net_gating);
CLOVER_CPU_SCRATCH(gated_delta_rule);
CLOVER_CPU_SCRATCH(preview_gated_delta_rule);
CLOVER_CPU_SCRATCH(preview_gdn);
CLOVER_CPU_PLAIN(topk_softmax);
CLOVER_CPU_SCRATCH(block_coreset);
CLOVER_CPU_PLAIN(live_row_routes);
CLOVER_CPU_PLAIN(merge_live_rows);
CLOVER_CPU_SCRATCH(fused_moe);
CLOVER_CPU_PLAIN(rotary_embedding);
CLOVER_CPU_PLAIN(rearrange);
CLOVER_CPU_PLAIN(cast);
CLOVER_CPU_PLAIN(rms_norm_gated);
