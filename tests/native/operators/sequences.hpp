// The packing that the cases with state share: three sequences, an empty one among them, and a row that belongs to
// none.
#pragma once

#include <initializer_list>

#include "reference.hpp"
#include "tensor.hpp"

namespace operators {

constexpr int64_t kTokens = 9, kSlots = 4;
inline const std::initializer_list<double> kCuSeqlens = {0, 3, 3, 8};
// In place; a copy, since the sequence is empty; from zeros into a slot of its own.
inline const std::initializer_list<double> kInitialSlots = {2, 1, -1};
inline const std::initializer_list<double> kFinalSlots = {2, 0, 3};

inline Tensor& pool(Tensor& tensor) {
  tensor.randomize(17, -1, 1);
  return tensor;
}

inline void change_sequences(Tensor* cu_seqlens, Tensor* initial, Tensor* final) {
  cu_seqlens->set_all({0, 1, 9, 9});
  initial->set_all({-1, 3, 0});
  if (final != nullptr) final->set_all({-1, -1, 0});
}

template <class Body>
void for_each_sequence(const Tensor& cu_seqlens, const Tensor& initial, Body&& body) {
  for (int64_t i = 0; i < initial.count(); ++i)
    body(i, static_cast<int64_t>(cu_seqlens.before(i)), static_cast<int64_t>(cu_seqlens.before(i + 1)));
}

// What is in the slot that a sequence starts from: zeros where it has none.
inline reference::Values read_slot(const Tensor& states, const Tensor& initial, int64_t sequence) {
  const int64_t size = states.count() / states.size(0);
  reference::Values state(static_cast<size_t>(size), 0.0);
  const int64_t slot = static_cast<int64_t>(initial.before(sequence));
  for (int64_t i = 0; slot >= 0 && i < size; ++i) state[static_cast<size_t>(i)] = states.before(slot * size + i);
  return state;
}

inline void write_slot(reference::Values* states, const Tensor& final, int64_t sequence,
                       const reference::Values& state) {
  const int64_t slot = static_cast<int64_t>(final.before(sequence));
  for (size_t i = 0; slot >= 0 && i < state.size(); ++i)
    (*states)[static_cast<size_t>(slot) * state.size() + i] = state[i];
}

}  // namespace operators
