// hiprtc, HIP's run-time compiler, opened at run time like the driver and never closed.
#pragma once

#include <string>
#include <vector>

namespace clover::device {

class Hiprtc {
 public:
  // The compiler of this process, found once.
  static const Hiprtc& get();

  // Why there is none, or an empty text.
  const std::string& error() const { return error_; }
  const std::string& path() const { return path_; }
  std::string version() const;  // "9.0"

  // Compiles for one architecture; throws CompileError with the compiler's log.
  std::string compile(const std::string& name, const std::string& source, const std::string& architecture,
                      const std::vector<std::string>& options) const;

 private:
  using Program = void*;

  Hiprtc();
  bool take(void* library, const std::string& path);
  void check_architecture(const std::string& architecture) const;
  std::string error_text(int status) const;

  std::string error_, path_;
  int (*version_)(int*, int*) = nullptr;
  const char* (*get_error_string_)(int) = nullptr;
  int (*create_)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*code_size_)(Program, size_t*) = nullptr;
  int (*code_)(Program, char*) = nullptr;
};

}  // namespace clover::device
