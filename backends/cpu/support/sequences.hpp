// Packed sequences and the slots that hold their states.
#pragma once

#include "view.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

struct Sequence {
  int64_t begin;  // first token
  int64_t tokens;
};

inline Sequence sequence_at(const View<const int32_t, 1>& cu_seqlens, int64_t n) {
  const int64_t begin = *cu_seqlens.at(n);
  return {begin, *cu_seqlens.at(n + 1) - begin};
}

// The length that work is estimated by when sequences share `tokens` among them.
inline int64_t average_length(int64_t tokens, int64_t sequences) {
  return sequences == 0 ? 0 : tokens / sequences + 1;
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
