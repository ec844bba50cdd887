// Errors inside a GPU plugin: thrown here, turned into a code and a message before they leave it.
#pragma once

#include <clover/abi.h>

#include <cstdio>
#include <exception>
#include <string>

namespace clover::device {

class Failure : public std::exception {
 public:
  Failure(clover_status status, std::string message) : status_(status), message_(std::move(message)) {}
  clover_status status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  clover_status status_;
  std::string message_;
};

inline int32_t report(clover_status status, const char* text, char* message, uint64_t capacity) noexcept {
  if (message != nullptr && capacity > 0) std::snprintf(message, capacity, "%s", text);
  return status;
}

// Runs `body` at the plugin's boundary: whatever it throws becomes a status and a message.
template <class Body>
int32_t guarded(char* message, uint64_t capacity, Body&& body) noexcept {
  try {
    body();
    return CLOVER_OK;
  } catch (const Failure& failure) {
    return report(failure.status(), failure.what(), message, capacity);
  } catch (const std::exception& error) {
    return report(CLOVER_INTERNAL, error.what(), message, capacity);
  } catch (...) {
    return report(CLOVER_INTERNAL, "an exception of unknown type", message, capacity);
  }
}

}  // namespace clover::device
