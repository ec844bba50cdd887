// What a native kernel needs to start: a plain description, made without touching a driver.
//
// A planner (`plan_<operator>`) turns the arguments of a call into one or more of these. It is host code that
// includes no CUDA and no HIP header, so the same planner serves both drivers and the SIMT harness in tests/.
#pragma once

#if defined(__HIPCC_RTC__)  // compiles device code alone; it has no standard headers, and some of their types
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
#else
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#endif

namespace clover::native {

#if !defined(__HIPCC_RTC__)  // what follows is for the host

// The machine that a plan is made for; read from the driver, never assumed.
struct Machine {
  int warp_size = 32;          // 32 on NVIDIA, 64 on a DCU
  int compute_capability = 0;  // 80, 90, ... on NVIDIA; 0 on HIP
  int multiprocessors = 1;
  int64_t shared_bytes_optin = 49152;  // the largest dynamic shared memory a block may ask for
};

struct Launch {
  static constexpr size_t kMaxParamBytes = 512;

  const char* kernel = nullptr;  // the symbol in the code object (extern "C")
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;  // dynamic shared memory
  size_t param_bytes = 0;     // every kernel takes exactly one argument: a trivially copyable struct, by value
  alignas(16) unsigned char params[kMaxParamBytes];

  template <class Params>
  void set_params(const Params& value) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kMaxParamBytes);
    std::memcpy(params, &value, sizeof(Params));
    param_bytes = sizeof(Params);
  }
};

#endif

// A strided view as kernels see it: strides in elements, unit stride in the last axis unless the kernel says otherwise.
enum class DType : int32_t { kFloat32 = 0, kBFloat16 = 1, kFloat16 = 2 };

}  // namespace clover::native
