// A C++ program with no Python in it runs bundled Triton kernels: `triton_program cuda|rocm`, on a stand-in driver,
// which takes this process's memory for a device's.
#include <clover/ops.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int64_t T = 128, H = 16, HV = 32, K = 128, V = 128, kSlots = 2;

struct Tensor {
  clover::DType dtype;
  std::vector<int64_t> shape;
  std::vector<float> memory = {};  // enough for any dtype here

  clover::TensorView on(clover::Device device) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    memory.resize(count + 64);
    const auto address = (reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256;
    return {reinterpret_cast<void*>(address), dtype, shape, device};
  }
};

}  // namespace

int main(int argc, char** argv) {
  const bool hip = argc > 1 && std::strcmp(argv[1], "rocm") == 0;
  const clover::Device device{hip ? CLOVER_ROCM : CLOVER_CUDA, 0};
  using clover::DType;
  Tensor q{DType::kBFloat16, {T, H, K}}, k = q, v{DType::kBFloat16, {T, HV, V}}, o = v;
  Tensor g{DType::kFloat32, {T, HV}}, beta = g, state{DType::kFloat32, {kSlots, HV, V, K}};
  Tensor cu_seqlens{DType::kInt32, {2}}, initial{DType::kInt32, {1}}, final = initial;
  clover::Handle handle;
  handle.provider_slot = 10;
  const auto call = [&](const auto& function) {
    return function(handle, q.on(device), k.on(device), v.on(device), g.on(device), beta.on(device), state.on(device),
                    cu_seqlens.on(device), initial.on(device), final.on(device), std::nullopt, true, std::nullopt,
                    o.on(device));
  };
  try {
    const uint64_t bytes = call([](const auto&... a) { return clover::gated_delta_rule_workspace_size(a...); });
    std::vector<char> workspace(bytes + 256);
    handle.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 255) / 256 * 256);
    handle.workspace_bytes = bytes;
    call([](const auto&... a) { clover::gated_delta_rule(a...); });
    std::printf("%llu bytes of workspace\n", static_cast<unsigned long long>(bytes));
  } catch (const clover::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
