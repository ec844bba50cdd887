#include "error.hpp"

#include <algorithm>
#include <cstring>

namespace clover {
namespace {

// A fixed buffer: remembering an error must not be able to fail.
thread_local char last_error[4096];

}  // namespace

int32_t set_last_error(clover_status code, const char* message) noexcept {
  const size_t length = std::min(std::strlen(message), sizeof(last_error) - 1);
  std::memcpy(last_error, message, length);
  last_error[length] = '\0';
  return code;
}

void clear_last_error() noexcept {
  last_error[0] = '\0';
}

}  // namespace clover

extern "C" const char* clover_last_error(void) {
  return clover::last_error;
}
