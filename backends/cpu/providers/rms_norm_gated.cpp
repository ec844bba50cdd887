// rms_norm_gated.
#include "../support/norm.hpp"
#include "../support/parallel.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

template <class T>
void normalize(const clover_rms_norm_gated_args& args, const clover_rms_norm_gated_dims& dims) {
  const View<const T, 3> x(*args.x), z(*args.z);
  const View<const T, 1> weight(*args.weight);
  const View<T, 3> y(*args.y);
  constexpr int64_t kStepsPerElement = 4;
  parallel_for(dims.T * dims.HV, dims.V * kStepsPerElement, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t t = row / dims.HV, head = row % dims.HV;
      rms_norm_gated_row(x.at(t, head), weight.data, z.at(t, head), dims.V, args.eps, y.at(t, head));
    }
  });
}

}  // namespace

void rms_norm_gated(const clover_call&, const clover_rms_norm_gated_args& args,
                    const clover_rms_norm_gated_dims& dims) {
  with_float_type(args.x->dtype, [&](auto type) { normalize<typename decltype(type)::type>(args, dims); });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
