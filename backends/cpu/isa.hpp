// The choice among the variants of the kernels: the best that the machine runs, or the one that CLOVER_OPS_CPU_ISA
// names.
#pragma once

#include "kernels.hpp"

namespace clover::cpu {

struct Selection {
  const Kernels* kernels;  // null when there is none to run
  const char* isa;         // its name; empty when there is none
  char error[256];         // why there is none
};

// Chosen on the first call, and the same ever after.
const Selection& selection();

}  // namespace clover::cpu
