// gated_delta_net_gating.
#include "../support/gating.hpp"

#include "../support/number.hpp"
#include "../support/parallel.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

template <class T>
void gate(const clover_gated_delta_net_gating_args& args, const clover_gated_delta_net_gating_dims& dims) {
  const View<const T, 2> a(*args.a), b(*args.b);
  const View<const float, 1> A_log(*args.A_log);
  const View<const T, 1> dt_bias(*args.dt_bias);
  const View<float, 2> g(*args.g), beta(*args.beta);
  constexpr int64_t kStepsPerHead = 64;
  parallel_for(dims.T, dims.HV * kStepsPerHead, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t head = 0; head < dims.HV; ++head) {
        const double x = static_cast<double>(to_float(*a.at(t, head))) + to_float(*dt_bias.at(head));
        *g.at(t, head) = log_decay(*A_log.at(head), x);
        *beta.at(t, head) = write_strength(to_float(*b.at(t, head)));
      }
    }
  });
}

}  // namespace

void gated_delta_net_gating(const clover_call&, const clover_gated_delta_net_gating_args& args,
                            const clover_gated_delta_net_gating_dims& dims) {
  with_float_type(args.a->dtype, [&](auto type) { gate<typename decltype(type)::type>(args, dims); });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
