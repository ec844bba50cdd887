// Tensors on a GPU for C++ programs without Python, and without a CUDA or HIP header: memory comes from the driver that
// the plugin opens.
#pragma once

#include <clover/driver.h>
#include <clover/ops.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace gpu {

inline void require(bool condition, const std::string& what) {
  if (condition) return;
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}

// As much of a driver's memory functions as is needed here.
class Memory {
 public:
  explicit Memory(bool hip) : hip_(hip) {
    using Cuda = clover::driver::Driver<CLOVER_CUDA>;
    using Hip = clover::driver::Driver<CLOVER_ROCM>;
    require((hip ? Hip::Open() : Cuda::Open()).empty(), hip ? Hip::Open() : Cuda::Open());
    library_ = dlopen((hip ? Hip::path() : Cuda::path()).c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (hip) return;
    void* context = nullptr;
    require(Cuda::table().DevicePrimaryCtxRetain(&context, 0) == 0 && Cuda::table().CtxPushCurrent(context) == 0,
            "the device's context");
  }

  void* allocate(size_t bytes) const {
    void* address = nullptr;
    const int status = get<int (*)(void**, size_t)>("hipMalloc", "cuMemAlloc_v2")(&address, bytes);
    require(status == 0, "allocating " + std::to_string(bytes) + " bytes: error " + std::to_string(status));
    return address;
  }
  void to_device(void* to, const void* from, size_t bytes) const {
    const auto copy = get<int (*)(void*, const void*, size_t)>("hipMemcpyHtoD", "cuMemcpyHtoD_v2");
    require(copy(to, from, bytes) == 0, "copying to the device");
  }
  void to_host(void* to, const void* from, size_t bytes) const {
    const auto copy = get<int (*)(void*, const void*, size_t)>("hipMemcpyDtoH", "cuMemcpyDtoH_v2");
    require(copy(to, from, bytes) == 0, "copying from the device: an earlier kernel may have failed");
  }

 private:
  template <class Function>
  Function get(const char* hip, const char* cuda) const {
    auto function = reinterpret_cast<Function>(dlsym(library_, hip_ ? hip : cuda));
    require(function != nullptr, std::string("the driver lacks ") + (hip_ ? hip : cuda));
    return function;
  }

  bool hip_;
  void* library_ = nullptr;
};

struct Array {
  clover::DType dtype;
  std::vector<int64_t> shape;
  std::vector<unsigned char> memory;
  void* device = nullptr;

  size_t size() const { return memory.size() / item(); }
  size_t item() const { return dtype == clover::DType::kBFloat16 ? 2 : 4; }
  clover::TensorView view(clover::Device where) const {
    void* host = const_cast<unsigned char*>(memory.data());
    return {where.type == CLOVER_CPU ? host : device, dtype, shape, where};
  }

  // BF16 is the upper half of FP32; here values are cut, not rounded.
  void set(size_t i, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (item() == 2) bits >>= 16;
    std::memcpy(&memory[i * item()], &bits, item());
  }
  float get(size_t i) const {
    uint32_t bits = 0;
    std::memcpy(&bits, &memory[i * item()], item());
    if (item() == 2) bits <<= 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
};

inline Array empty(clover::DType dtype, std::vector<int64_t> shape) {
  Array array{dtype, std::move(shape), {}};
  size_t count = array.item();
  for (const int64_t size : array.shape) count *= static_cast<size_t>(size);
  array.memory.resize(count);
  return array;
}

inline Array random(clover::DType dtype, std::vector<int64_t> shape, float low, float high) {
  static std::mt19937 generator(7);
  std::uniform_real_distribution<float> between(low, high);
  Array array = empty(dtype, std::move(shape));
  for (size_t i = 0; i < array.size(); ++i) array.set(i, between(generator));
  return array;
}

inline Array integers(const std::vector<int32_t>& numbers) {
  Array array = empty(clover::DType::kInt32, {static_cast<int64_t>(numbers.size())});
  std::memcpy(array.memory.data(), numbers.data(), array.memory.size());
  return array;
}

inline void place(const Memory& memory, Array* array) {
  array->device = memory.allocate(array->memory.size());
  memory.to_device(array->device, array->memory.data(), array->memory.size());
}

inline Array fetched(const Memory& memory, const Array& array) {
  Array copy = array;
  memory.to_host(copy.memory.data(), array.device, copy.memory.size());
  return copy;
}

// The greatest difference of two arrays; not a number counts as one.
inline double greatest_difference(const Array& a, const Array& b) {
  double greatest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a.get(i)} - double{b.get(i)});
    if (!(difference <= greatest)) greatest = difference;
  }
  return greatest;
}

// A workspace on the host, for the CPU backend.
inline void set_scratch(std::vector<char>* scratch, clover::Handle* handle, uint64_t bytes) {
  scratch->resize(bytes + 256);
  const auto address = (reinterpret_cast<uintptr_t>(scratch->data()) + 255) / 256 * 256;
  handle->workspace = reinterpret_cast<void*>(address);
  handle->workspace_bytes = bytes;
}

// A call of gated_delta_rule on sequences that `cu_seqlens` delimits.
struct Commit {
  Array q, k, v, g, beta, state, cu_seqlens, slots, o;

  Commit(clover::DType dtype, int64_t H, int64_t HV, int64_t K, int64_t V, const std::vector<int32_t>& cumulated,
         const std::vector<int32_t>& slot_of) {
    const int64_t T = cumulated.back();
    q = random(dtype, {T, H, K}, -1, 1), k = random(dtype, {T, H, K}, -1, 1), v = random(dtype, {T, HV, V}, -1, 1);
    g = random(clover::DType::kFloat32, {T, HV}, -0.5f, 0), beta = random(clover::DType::kFloat32, {T, HV}, 0, 1);
    state = random(clover::DType::kFloat32, {static_cast<int64_t>(slot_of.size()) + 1, HV, V, K}, -0.1f, 0.1f);
    cu_seqlens = integers(cumulated), slots = integers(slot_of), o = random(dtype, {T, HV, V}, 7, 8);
  }

  std::vector<Array*> all() { return {&q, &k, &v, &g, &beta, &state, &cu_seqlens, &slots, &o}; }

  template <class Function>
  auto apply(const Function& function, const clover::Handle& handle, clover::Device on) const {
    return function(handle, q.view(on), k.view(on), v.view(on), g.view(on), beta.view(on), state.view(on),
                    cu_seqlens.view(on), slots.view(on), slots.view(on), std::nullopt, true, std::nullopt, o.view(on));
  }
  uint64_t workspace_bytes(const clover::Handle& handle, clover::Device on) const {
    return apply([](const auto&... a) { return clover::gated_delta_rule_workspace_size(a...); }, handle, on);
  }
  void run(const clover::Handle& handle, clover::Device on) const {
    apply([](const auto&... a) { clover::gated_delta_rule(a...); }, handle, on);
  }
};

// What `rocm` or `cuda` on the command line names; ends the program where no backend is active for it.
inline clover::Device device_of(int count, char** arguments) {
  const bool hip = count > 1 && std::string(arguments[1]) == "rocm";
  const clover::Device device{hip ? CLOVER_ROCM : CLOVER_CUDA, 0};
  require(clover::supports(clover::Op::kGatedDeltaRule, device), "no active backend for the device");
  return device;
}

}  // namespace gpu
