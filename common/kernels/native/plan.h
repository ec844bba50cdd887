// Small things that every planner of this folder needs, and what planners and kernels must agree on.
#pragma once

#if !defined(__HIPCC_RTC__)
#include <initializer_list>
#endif

#include "launch.h"

namespace clover::native {

// Every kernel runs with blocks of this many threads in one dimension, whatever the size of a warp: 8 warps of 32 lanes
// or 4 of 64.
constexpr int kBlockThreads = 256;
constexpr int64_t kMaxGrid = 0x7fffffff;
constexpr size_t kWorkspaceAlignment = 256;

#if !defined(__HIPCC_RTC__)  // what follows is for the host

inline constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline constexpr int64_t round_up(int64_t a, int64_t b) {
  return divide_up(a, b) * b;
}

inline bool is_aligned(const void* pointer, int64_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(bytes) == 0;
}

inline int64_t element_bytes(DType dtype) {
  return dtype == DType::kFloat32 ? 4 : 2;
}

// Names of a kernel's variants, in the order of DType.
struct DTypeNames {
  const char* names[3];
  const char* of(DType dtype) const { return names[static_cast<int>(dtype)]; }
};
#define CLOVER_DTYPE_NAMES(stem) \
  ::clover::native::DTypeNames {{stem "_f32", stem "_bf16", stem "_f16"}}

template <class Params>
Launch make_launch(const char* kernel, int64_t blocks, const Params& params, int64_t shared_bytes = 0) {
  Launch launch;
  launch.kernel = kernel;
  launch.grid[0] = static_cast<uint32_t>(blocks);
  launch.block[0] = kBlockThreads;
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes);
  launch.set_params(params);
  return launch;
}

// Blocks for a loop over `count` items by all threads of the grid: enough to fill the machine, and never more than
// needed.
inline int64_t loop_blocks(const Machine& machine, int64_t count) {
  const int64_t wanted = divide_up(count, kBlockThreads);
  const int64_t most = int64_t{32} * (machine.multiprocessors > 0 ? machine.multiprocessors : 1);
  return wanted < most ? wanted : most;
}

// A planner's refusal: no launch, and why.
inline int refuse(const char** why_not, const char* reason) {
  *why_not = reason;
  return 0;
}

// The workspace's parts: counted when it has no memory yet, handed out in the same order when it has.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(void* memory) : memory_(static_cast<char*>(memory)) {}

  template <class Item>
  Item* take(int64_t count) {
    char* part = memory_ == nullptr ? nullptr : memory_ + bytes_;
    bytes_ += static_cast<size_t>(round_up(count * static_cast<int64_t>(sizeof(Item)), kWorkspaceAlignment));
    return reinterpret_cast<Item*>(part);
  }

  size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  size_t bytes_ = 0;
};

#endif

}  // namespace clover::native
