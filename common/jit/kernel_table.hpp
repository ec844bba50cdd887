// The Triton kernels that travel with this plugin: common/kernels/triton/kernels.toml as embed.py turns it into C++.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clover::jit {

// A constexpr's value. Triton tells an integer from a truth value.
struct Constant {
  int64_t value = 0;
  bool boolean = false;

  std::string text() const { return boolean ? (value != 0 ? "true" : "false") : std::to_string(value); }
  bool operator==(const Constant& other) const { return value == other.value && boolean == other.boolean; }
};

// A way to compile a kernel: some constexprs, warps, stages and backend options.
struct Config {
  std::vector<std::pair<std::string, Constant>> constants;
  int num_warps = 4;
  int num_stages = 1;
  std::map<std::string, std::string> options;
};

struct Parameter {
  Parameter(std::string name, std::string type);

  std::string name;
  std::string type;  // `*x` is a pointer to the data dtype of the call
  char kind;         // 'p' for pointers, 'l', 'i' and 'f' for i64, i32 and fp32
  bool specialised;  // see launch.hpp
};

struct KernelRow {
  std::string name;
  std::string source;  // digest of its sources
  std::vector<Parameter> parameters;
  std::vector<std::string> constants;  // names of the constexprs
  std::vector<Config> configs;  // candidates for this plugin's devices; the first is taken where nothing is tuned
  int64_t scratch_bytes = 0;    // the most that a compiled one may ask for, for each program
};

// Generated.
const std::vector<KernelRow>& kernel_table();

// Throws when there is no such kernel.
const KernelRow& kernel_row(std::string_view name);

}  // namespace clover::jit
