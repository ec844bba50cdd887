#include "kernel_table.hpp"

#include "common/device/failure.hpp"

namespace clover::jit {
namespace {

char kind_of(const std::string& type) {
  return type[0] == '*' ? 'p' : type == "i64" ? 'l' : type == "i32" ? 'i' : 'f';
}

bool specialised(const std::string& type) {
  return type == "i64" || type == "*x" || type == "*bf16" || type == "*fp16" || type == "*fp32";
}

}  // namespace

Parameter::Parameter(std::string its_name, std::string its_type)
    : name(std::move(its_name)), type(std::move(its_type)), kind(kind_of(type)), specialised(jit::specialised(type)) {}

const KernelRow& kernel_row(std::string_view name) {
  for (const KernelRow& row : kernel_table())
    if (row.name == name) return row;
  throw device::Failure(CLOVER_INTERNAL, "kernels.toml has no kernel " + std::string(name));
}

}  // namespace clover::jit
