#include "kernel_table.hpp"

#include "common/device/failure.hpp"

namespace clover::jit {

const KernelRow& kernel_row(const std::string& name) {
  for (const KernelRow& row : kernel_table())
    if (row.name == name) return row;
  throw device::Failure(CLOVER_INTERNAL, "kernels.toml has no kernel " + name);
}

}  // namespace clover::jit
