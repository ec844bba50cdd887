// A plugin's manifest: line-oriented text beside its library, read before the library is opened.
//
//   clover-plugin 1
//   name cpu
//   version 0.1.0
//   abi 1
//   library libclover_ops_cpu.so
//   device cpu
//   probe always                      or the file name of a probe library
//   toolchain GNU 12.2.0
//   architecture x86-64-v3            one line each; may be absent
//   provider cast 0 native            operator, slot, name; one line each
//
// Lines that start with `#` and empty lines are skipped. An unknown key is an error, with its line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace clover {

struct Manifest {
  struct Provider {
    std::string op;
    int32_t slot;
    std::string name;
  };

  std::string path;
  std::string name;
  std::string version;
  uint32_t abi = 0;
  std::string library;  // absolute
  std::string device;
  int32_t device_type = 0;
  std::string probe;  // empty: always there; else absolute
  std::string toolchain;
  std::vector<std::string> architectures;
  std::vector<Provider> providers;
};

// Throws Error(CLOVER_ABI_MISMATCH) for a manifest of another format, Error(CLOVER_INVALID_ARGUMENT) for a broken one.
Manifest read_manifest(const std::string& path);

}  // namespace clover
