#include "kernel_table.hpp"

#include "common/device/failure.hpp"

namespace clover::jit {

const KernelRow& kernel_row(const char* name) {
  for (const KernelRow& row : kernel_table())
    if (row.name == name) return row;
  throw device::Failure(CLOVER_INTERNAL, std::string("kernels.toml has no kernel ") + name);
}

}  // namespace clover::jit
