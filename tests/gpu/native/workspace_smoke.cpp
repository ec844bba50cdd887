// gated_delta_rule from C++ on a GPU with a right, short, misaligned and missing workspace; the result is compared with
// the CPU backend's. No Python, and no CUDA or HIP header: memory comes from the driver that the plugin opens.
#include <clover/driver.h>
#include <clover/ops.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int64_t T = 40, H = 2, HV = 4, K = 64, V = 64, kSlots = 3;

void require(bool condition, const std::string& what) {
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
  std::vector<float> values;  // of int32 arrays too: 4 bytes each
  void* device = nullptr;

  size_t bytes() const { return values.size() * sizeof(float); }
  clover::TensorView view(clover::Device where) const {
    return {where.type == CLOVER_CPU ? values.data() : device, dtype, shape, where};
  }
};

Array floats(std::vector<int64_t> shape, float low, float high) {
  static std::mt19937 random(7);
  std::uniform_real_distribution<float> between(low, high);
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  Array array{clover::DType::kFloat32, std::move(shape), std::vector<float>(count)};
  for (float& value : array.values) value = between(random);
  return array;
}

Array integers(const std::vector<int32_t>& numbers) {
  Array array{clover::DType::kInt32, {static_cast<int64_t>(numbers.size())}, std::vector<float>(numbers.size())};
  std::memcpy(array.values.data(), numbers.data(), array.bytes());
  return array;
}

struct Call {
  Array q = floats({T, H, K}, -1, 1), k = floats({T, H, K}, -1, 1), v = floats({T, HV, V}, -1, 1);
  Array g = floats({T, HV}, -0.5f, 0), beta = floats({T, HV}, 0, 1), state = floats({kSlots, HV, V, K}, -0.1f, 0.1f);
  Array cu_seqlens = integers({0, 9, 40}), slots = integers({2, 0}), o = floats({T, HV, V}, 7, 8);

  std::vector<Array*> all() { return {&q, &k, &v, &g, &beta, &state, &cu_seqlens, &slots, &o}; }
  template <class Function>
  auto apply(const Function& function, const clover::Handle& handle, clover::Device on) {
    return function(handle, q.view(on), k.view(on), v.view(on), g.view(on), beta.view(on), state.view(on),
                    cu_seqlens.view(on), slots.view(on), slots.view(on), std::nullopt, true, std::nullopt, o.view(on));
  }
};

uint64_t workspace_bytes(Call& call, const clover::Handle& handle, clover::Device on) {
  return call.apply([](const auto&... a) { return clover::gated_delta_rule_workspace_size(a...); }, handle, on);
}
void run(Call& call, const clover::Handle& handle, clover::Device on) {
  call.apply([](const auto&... a) { clover::gated_delta_rule(a...); }, handle, on);
}

void require_refused(Call& call, void* workspace, uint64_t bytes, clover::Device on, const char* what) {
  try {
    run(call, {nullptr, workspace, bytes, CLOVER_ANY_SLOT}, on);
  } catch (const clover::MissingWorkspace& error) {
    std::printf("%s workspace refused: %s\n", what, error.what());
    return;
  }
  require(false, std::string("a ") + what + " workspace was accepted");
}

double greatest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double greatest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - double{b[i]});
    if (!(difference <= greatest)) greatest = difference;
  }
  return greatest;
}

void set_scratch(std::vector<char>& scratch, clover::Handle* handle, uint64_t bytes) {
  scratch.resize(bytes + 256);
  const auto address = (reinterpret_cast<uintptr_t>(scratch.data()) + 255) / 256 * 256;
  handle->workspace = reinterpret_cast<void*>(address);
  handle->workspace_bytes = bytes;
}

}  // namespace

int main(int count, char** arguments) {
  const bool hip = count > 1 && std::string(arguments[1]) == "rocm";
  const clover::Device gpu{hip ? CLOVER_ROCM : CLOVER_CUDA, 0}, cpu{};
  require(clover::supports(clover::Op::kGatedDeltaRule, gpu), "no active backend for the device");
  const Memory memory(hip);
  Call call;
  for (Array* array : call.all()) {
    array->device = memory.allocate(array->bytes());
    memory.to_device(array->device, array->values.data(), array->bytes());
  }

  const uint64_t bytes = workspace_bytes(call, {}, gpu);
  char* workspace = static_cast<char*>(memory.allocate(bytes + 256));
  std::printf("workspace: %llu bytes\n", static_cast<unsigned long long>(bytes));
  if (bytes > 0) {
    require_refused(call, nullptr, 0, gpu, "missing");
    require_refused(call, workspace, bytes - 1, gpu, "short");
    require_refused(call, workspace + 4, bytes, gpu, "misaligned");
  }
  run(call, {nullptr, workspace, bytes, CLOVER_ANY_SLOT}, gpu);
  std::vector<float> o(call.o.values.size()), state(call.state.values.size());
  memory.to_host(o.data(), call.o.device, call.o.bytes());
  memory.to_host(state.data(), call.state.device, call.state.bytes());

  clover::Handle handle;
  std::vector<char> scratch;
  set_scratch(scratch, &handle, workspace_bytes(call, {}, cpu));
  run(call, handle, cpu);
  const double difference = greatest_difference(o, call.o.values);
  const double state_difference = greatest_difference(state, call.state.values);
  std::printf("greatest difference from the CPU: output %g, state %g\n", difference, state_difference);
  require(difference <= 1e-4 && state_difference <= 1e-4, "the results differ");
  std::printf("ok\n");
}
