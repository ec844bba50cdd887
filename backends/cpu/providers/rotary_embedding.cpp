// rotary_embedding.
#include "../support/number.hpp"
#include "../support/parallel.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

template <class T>
void rotate(T* first, T* second, const T* cos, const T* sin) {
  const float x1 = to_float(*first), x2 = to_float(*second);
  const float c = to_float(*cos), s = to_float(*sin);
  *first = from_float<T>(x1 * c - x2 * s);
  *second = from_float<T>(x2 * c + x1 * s);
}

template <class T>
void rotate_head(T* x, const T* cos, int64_t half, bool interleaved) {
  const T* sin = cos + half;
  if (interleaved) {
    for (int64_t i = 0; i < half; ++i) rotate(x + 2 * i, x + 2 * i + 1, cos + i, sin + i);
    return;
  }
  int64_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Vec x1 = load(x + i), x2 = load(x + half + i);
    const Vec c = load(cos + i), s = load(sin + i);
    store(x + i, x1 * c - x2 * s);
    store(x + half + i, x2 * c + x1 * s);
  }
  for (; i < half; ++i) rotate(x + i, x + half + i, cos + i, sin + i);
}

template <class T>
void rotate_all(const clover_rotary_embedding_args& args, const clover_rotary_embedding_dims& dims) {
  const View<const int32_t, 1> positions(*args.positions);
  const View<T, 3> q(*args.q), k(*args.k);
  const View<const T, 2> cos_sin(*args.cos_sin);
  const int64_t half = dims.RD / 2;
  const bool interleaved = args.interleaved != 0;
  parallel_for(dims.T, (dims.A + dims.AKV) * dims.RD, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const T* cos = cos_sin.at(*positions.at(t));
      for (int64_t head = 0; head < dims.A; ++head) rotate_head(q.at(t, head), cos, half, interleaved);
      for (int64_t head = 0; head < dims.AKV; ++head) rotate_head(k.at(t, head), cos, half, interleaved);
    }
  });
}

}  // namespace

void rotary_embedding(const clover_call&, const clover_rotary_embedding_args& args,
                      const clover_rotary_embedding_dims& dims) {
  with_float_type(args.q->dtype, [&](auto type) { rotate_all<typename decltype(type)::type>(args, dims); });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
