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
  // One token's experts go to Triton where the card's tuned table says so. All experts lie in one place.
  constexpr int64_t kExperts = 256, kTopK = 8, kWidth = 2048, kInner = 512;
  gpu::Array token = gpu::random(DType::kBFloat16, {1, kWidth}, -1, 1), result = token;
  gpu::Array up = gpu::empty(DType::kBFloat16, {2 * kInner, kWidth}),
             down = gpu::empty(DType::kBFloat16, {kWidth, kInner});
  gpu::Array routes = gpu::integers({0, 1, 2, 3, 4, 5, 6, 7}), shares = gpu::random(DType::kFloat32, {1, kTopK}, 0, 1);
  routes.shape = {1, kTopK};
  for (gpu::Array* array : {&token, &result, &up, &down, &routes, &shares}) place(memory, array);
  const clover::TensorView experts_up(up.device, up.dtype, {kExperts, 2 * kInner, kWidth}, {0, kWidth, 1}, device);
  const clover::TensorView experts_down(down.device, down.dtype, {kExperts, kWidth, kInner}, {0, kInner, 1}, device);
  const auto moe = [&](const auto& function, const clover::Handle& with) {
    return function(with, token.view(device), experts_up, experts_down, routes.view(device), shares.view(device),
                    std::nullopt, std::nullopt, std::nullopt, 1.0, clover::WeightLayout::kDense, result.view(device));
  };
  clover::Handle handle;
  const auto moe_workspace = [](const auto&... a) { return clover::fused_moe_workspace_size(a...); };
  handle.workspace_bytes = std::max(commit.workspace_bytes({}, device), moe(moe_workspace, {}));
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
      {"fused_moe, one token, 6 tensors", [&] { moe([](const auto&... a) { clover::fused_moe(a...); }, handle); }},
  };
  std::string json;
  for (const auto& one : cases) {
    const double us = best_us(one.call, [&] { fetched(memory, y); });
    std::printf("%-32s %6.2f us\n", one.name, us);
    json += (json.empty() ? "{\n \"" : ",\n \"") + std::string(one.name) + "\": " + std::to_string(us);
  }
  if (count > 2) {
    std::FILE* file = std::fopen(arguments[2], "w");
    gpu::require(file != nullptr, std::string("cannot write ") + arguments[2]);
    std::fprintf(file, "%s\n}\n", json.c_str());
    std::fclose(file);
  }
}
