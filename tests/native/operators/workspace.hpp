// Memory for a call's workspace, aligned as it must be, with a guard behind it.
#pragma once

#include <clover/handle.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace operators {

class Workspace {
 public:
  explicit Workspace(uint64_t bytes)
      : bytes_(bytes), memory_(bytes + kGuard + CLOVER_WORKSPACE_ALIGNMENT), first_(memory_.data()) {
    while (reinterpret_cast<uintptr_t>(first_) % CLOVER_WORKSPACE_ALIGNMENT != 0) ++first_;
    fill(0);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void fill(unsigned char byte) {
    std::fill(memory_.begin(), memory_.end(), kGuardByte);
    std::fill(first_, first_ + bytes_, byte);
    filled_with_ = byte;
  }

  clover::Handle handle() const {
    clover::Handle handle;
    handle.workspace = bytes_ == 0 ? nullptr : first_;
    handle.workspace_bytes = bytes_;
    return handle;
  }

  bool guard_intact() const {
    return std::all_of(first_ + bytes_, first_ + bytes_ + kGuard,
                       [](unsigned char byte) { return byte == kGuardByte; });
  }
  bool untouched() const {
    return guard_intact() &&
           std::all_of(first_, first_ + bytes_, [&](unsigned char byte) { return byte == filled_with_; });
  }

 private:
  static constexpr uint64_t kGuard = 64;
  static constexpr unsigned char kGuardByte = 0xC7;

  uint64_t bytes_;
  std::vector<unsigned char> memory_;
  unsigned char* first_;
  unsigned char filled_with_ = 0;
};

}  // namespace operators
