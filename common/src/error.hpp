// Errors inside the core: thrown here, turned into a code and a message at the C boundary, never let through it.
#pragma once

#include <clover/abi.h>

#include <stdexcept>
#include <string>

namespace clover {

// What a plugin returned, which may be anything.
inline clover_status status_of(int32_t code) {
  return code >= CLOVER_OK && code <= CLOVER_INTERNAL ? static_cast<clover_status>(code) : CLOVER_INTERNAL;
}

class Error : public std::exception {
 public:
  Error(clover_status code, std::string message) : code_(code), message_(std::move(message)) {}
  clover_status code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  clover_status code_;
  std::string message_;
};

// Remembers the message for clover_last_error() on this thread.
int32_t set_last_error(clover_status code, const char* message) noexcept;
void clear_last_error() noexcept;

// Runs `body` at a C boundary: whatever it throws becomes a status.
template <class Body>
int32_t guarded(Body&& body) noexcept {
  try {
    clear_last_error();
    body();
    return CLOVER_OK;
  } catch (const Error& error) {
    return set_last_error(error.code(), error.what());
  } catch (const std::exception& error) {
    return set_last_error(CLOVER_INTERNAL, error.what());
  } catch (...) {
    return set_last_error(CLOVER_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace clover
