// The operators as this variant defines them.
#pragma once

#include "../kernels.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

#define CLOVER_CPU_DECLARE(op) void op(const clover_call&, const clover_##op##_args&, const clover_##op##_dims&);
CLOVER_CPU_OPERATORS(CLOVER_CPU_DECLARE)
#undef CLOVER_CPU_DECLARE
#define CLOVER_CPU_DECLARE(op) uint64_t op##_workspace(const clover_##op##_args&, const clover_##op##_dims&);
CLOVER_CPU_WORKSPACE_OPERATORS(CLOVER_CPU_DECLARE)
#undef CLOVER_CPU_DECLARE

}  // namespace clover::cpu::CLOVER_CPU_ISA
