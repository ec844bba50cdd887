// What one eager call from C++ costs on the host: `host_cost cuda|rocm [FILE]`. Tensors are tiny, nothing is waited for
// while calls are counted, and the smallest of many repetitions is reported, so nearly all of the time is the call
// itself.
#include <algorithm>
#include <chrono>
#include <functional>

#include "device.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// Few enough calls that the driver's queue never fills up.
double best_us(const std::function<void()>& call, const std::function<void()>& wait) {
  constexpr int kCalls = 200, kRepetitions = 100;
  double best = 1e30;
  call();
  for (int i = 0; i < kRepetitions; ++i) {
    wait();
    const auto begin = Clock::now();
    for (int j = 0; j < kCalls; ++j) call();
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCalls);
  }
  return best;
}

}  // namespace

int main(int count, char** arguments) {
  using clover::DType;
  const clover::Device device = gpu::device_of(count, arguments);
  const gpu::Memory memory(device.type == CLOVER_ROCM);
  clover::warmup(device);
  gpu::Array wide = gpu::random(DType::kFloat32, {4, 4}, -1, 1), narrow = gpu::empty(DType::kBFloat16, {4, 4});
  gpu::Array logits = gpu::random(DType::kFloat32, {1, 16}, -1, 1), weights = gpu::empty(DType::kFloat32, {1, 4});
  gpu::Array ids = gpu::empty(DType::kInt32, {1, 4});
  gpu::Array x = gpu::random(DType::kFloat32, {1, 8}, -1, 1), y = x, taps = gpu::random(DType::kFloat32, {8, 4}, -1, 1);
  gpu::Array pool = gpu::random(DType::kFloat32, {2, 8, 3}, -1, 1), cu_seqlens = gpu::integers({0, 1}),
             slot = gpu::integers({0});
  gpu::Commit commit(DType::kFloat32, 1, 1, 64, 64, {0, 1}, {0});
  for (gpu::Array* array : {&wide, &narrow, &logits, &weights, &ids, &x, &y, &taps, &pool, &cu_seqlens, &slot})
    place(memory, array);
  for (gpu::Array* array : commit.all()) place(memory, array);
  clover::Handle handle;
  handle.workspace_bytes = commit.workspace_bytes({}, device);
  handle.workspace = memory.allocate(handle.workspace_bytes + 256);

  const struct {
    const char* name;
    std::function<void()> call;
  } cases[] = {
      {"cast, 2 tensors", [&] { clover::cast({}, wide.view(device), narrow.view(device)); }},
      {"topk_softmax, 3 tensors",
       [&] { clover::topk_softmax({}, logits.view(device), 4, false, ids.view(device), weights.view(device)); }},
      {"causal_conv1d, 7 tensors",
       [&] {
         clover::causal_conv1d({}, x.view(device), taps.view(device), std::nullopt, pool.view(device),
                               cu_seqlens.view(device), slot.view(device), slot.view(device), clover::Activation::kNone,
                               std::nullopt, y.view(device));
       }},
      {"gated_delta_rule, 10 tensors", [&] { commit.run(handle, device); }},
  };
  std::string json;
  for (const auto& one : cases) {
    const double us = best_us(one.call, [&] { fetched(memory, y); });
    std::printf("%-30s %6.2f us\n", one.name, us);
    json += (json.empty() ? "{\n \"" : ",\n \"") + std::string(one.name) + "\": " + std::to_string(us);
  }
  if (count > 2) {
    std::FILE* file = std::fopen(arguments[2], "w");
    gpu::require(file != nullptr, std::string("cannot write ") + arguments[2]);
    std::fprintf(file, "%s\n}\n", json.c_str());
    std::fclose(file);
  }
}
