// This plugin's driver. The backend's CMake file says which: CLOVER_DEVICE_TYPE is CLOVER_CUDA or CLOVER_ROCM.
#pragma once

#include <clover/driver.h>

#include <string>

#include "failure.hpp"

namespace clover::device {

using Driver = driver::Driver<CLOVER_DEVICE_TYPE>;

// "cuda:0"
inline std::string device_name(int32_t ordinal) {
  return (Driver::kCuda ? "cuda:" : "rocm:") + std::to_string(ordinal);
}

// Throws what a failed call means: its full name, the error, and what to do about it. `call` is the name in
// clover::driver::Table, `what` says what was being done.
[[noreturn]] void fail(const char* call, driver::Status status, const std::string& what);

inline void check(const char* call, driver::Status status, const std::string& what = "") {
  if (status != driver::kSuccess) fail(call, status, what);
}

}  // namespace clover::device
