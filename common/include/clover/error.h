// The C ABI's statuses as exceptions, thrown in the caller's own C++ runtime.
#pragma once

#include <clover/abi.h>

#include <stdexcept>
#include <string>

namespace clover {

class Error : public std::runtime_error {
 public:
  Error(clover_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  clover_status status() const { return status_; }

 private:
  clover_status status_;
};

// One class per status, so that a caller can catch the ones it can act on.
template <clover_status kStatus>
class StatusError : public Error {
 public:
  explicit StatusError(const std::string& message) : Error(kStatus, message) {}
};

using InvalidArgument = StatusError<CLOVER_INVALID_ARGUMENT>;
using Unsupported = StatusError<CLOVER_UNSUPPORTED>;
using MissingWorkspace = StatusError<CLOVER_MISSING_WORKSPACE>;
using DriverError = StatusError<CLOVER_DRIVER_ERROR>;
using CompileError = StatusError<CLOVER_COMPILE_ERROR>;
using AbiMismatch = StatusError<CLOVER_ABI_MISMATCH>;
using InternalError = StatusError<CLOVER_INTERNAL>;

// Throws what a status means; CLOVER_OK returns.
inline void check(int32_t status) {
  if (status == CLOVER_OK) return;
  const std::string message = clover_last_error();
  switch (status) {
    case CLOVER_INVALID_ARGUMENT:
      throw InvalidArgument(message);
    case CLOVER_UNSUPPORTED:
      throw Unsupported(message);
    case CLOVER_MISSING_WORKSPACE:
      throw MissingWorkspace(message);
    case CLOVER_DRIVER_ERROR:
      throw DriverError(message);
    case CLOVER_COMPILE_ERROR:
      throw CompileError(message);
    case CLOVER_ABI_MISMATCH:
      throw AbiMismatch(message);
    default:
      throw InternalError(message);
  }
}

}  // namespace clover
