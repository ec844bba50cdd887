// This variant's kernels, in the order of the table's members.
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

extern const Kernels kernels;
const Kernels kernels = {
#define CLOVER_CPU_ENTRY(op) op,
    CLOVER_CPU_OPERATORS(CLOVER_CPU_ENTRY)
#undef CLOVER_CPU_ENTRY
#define CLOVER_CPU_ENTRY(op) op##_workspace,
        CLOVER_CPU_WORKSPACE_OPERATORS(CLOVER_CPU_ENTRY)
#undef CLOVER_CPU_ENTRY
};

}  // namespace clover::cpu::CLOVER_CPU_ISA
