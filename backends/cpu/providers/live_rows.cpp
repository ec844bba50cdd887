// live_row_routes and merge_live_rows: copies only.
#include "../support/parallel.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

void live_row_routes(const clover_call&, const clover_live_row_routes_args& args,
                     const clover_live_row_routes_dims& dims) {
  const View<const int32_t, 2> ids(*args.ids);
  const View<const float, 2> weights(*args.weights);
  const View<const uint8_t, 1> live(*args.live);
  const View<int32_t, 2> live_ids(*args.live_ids);
  const View<float, 2> live_weights(*args.live_weights);
  const View<int32_t, 1> rows(*args.rows);

  int32_t count = 0;
  for (int64_t t = 0; t < dims.T; ++t) {
    const bool lives = *live.at(t) != 0;
    for (int64_t j = 0; j < dims.k; ++j) {
      *live_ids.at(t, j) = lives ? *ids.at(t, j) : -1;
      *live_weights.at(t, j) = lives ? *weights.at(t, j) : 0.0f;
    }
    if (lives) *rows.at(count++) = static_cast<int32_t>(t);
  }
  for (int64_t row = count; row < dims.T; ++row) *rows.at(row) = -1;
  *data_of<int32_t>(*args.count) = count;
}

namespace {

// Bits of an element's size stand for it, so that nothing happens to a NaN.
template <class Bits>
void merge(const clover_merge_live_rows_args& args, const clover_merge_live_rows_dims& dims) {
  const View<const Bits, 2> fresh(*args.fresh);
  const View<const uint8_t, 1> live(*args.live);
  const View<Bits, 2> cache(*args.cache), out(*args.out);
  const size_t bytes = static_cast<size_t>(dims.D) * sizeof(Bits);
  parallel_for(dims.T, dims.D, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (*live.at(t) != 0) {
        __builtin_memcpy(cache.at(t), fresh.at(t), bytes);
        __builtin_memcpy(out.at(t), fresh.at(t), bytes);
      } else {
        __builtin_memcpy(out.at(t), cache.at(t), bytes);
      }
    }
  });
}

}  // namespace

void merge_live_rows(const clover_call&, const clover_merge_live_rows_args& args,
                     const clover_merge_live_rows_dims& dims) {
  if (dims.D == 0) return;
  if (args.out->dtype.bits == 16) {
    merge<uint16_t>(args, dims);
  } else {
    merge<uint32_t>(args, dims);
  }
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
