// Eight threads whose first calls are the process's first calls: discovery, the backend's start and the registry's
// answers all meet here.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "check.hpp"
#include "operators/case.hpp"
#include "operators/workspace.hpp"

namespace {

constexpr int kThreads = 8, kRounds = 3;

void run_all(int thread) {
  const check::Context context("thread " + std::to_string(thread));
  std::vector<operators::CasePointer> cases = operators::all_cases(operators::DType::kFloat32);
  for (size_t i = 0; i < cases.size() * kRounds; ++i) {
    operators::Case& c = *cases[(i + static_cast<size_t>(thread) * 3) % cases.size()];  // not in step with the others
    const check::Context operator_context(c.name());
    c.restore();
    const operators::Workspace workspace(c.workspace_size({}));
    c.run(workspace.handle());
    c.verify();
    // An error is this thread's own.
    CHECK_THROWS(
        clover::Unsupported,
        [&] {
          clover::Handle handle = workspace.handle();
          handle.provider_slot = thread + 1;
          c.run(handle);
        },
        "no provider in slot " + std::to_string(thread + 1) + " on");
  }
}

// All start together.
template <class Body>
void run_threads(Body&& body) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      try {
        for (++ready; ready < kThreads;) std::this_thread::yield();
        body(i);
      } catch (const std::exception& error) {
        check::record(false, __FILE__, __LINE__, error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// A preview large enough to be worth the backend's thread pool; returns the outputs.
std::vector<float> large_preview() {
  constexpr int64_t kSequences = 8, kTokens = 128, kHeads = 8, kSize = 32;
  const auto filled = [](int64_t count, int modulus, float step) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i) % modulus) * step;
    return values;
  };
  const std::vector<float> q = filled(kTokens * kHeads * kSize, 7, 0.1f),
                           k = filled(kTokens * kHeads * kSize, 5, 0.05f);
  const std::vector<float> v = filled(kTokens * kHeads * kSize, 11, 0.2f), g = filled(kTokens * kHeads, 3, -0.1f);
  const std::vector<float> beta = filled(kTokens * kHeads, 4, 0.25f), state = filled(kHeads * kSize * kSize, 9, 0.1f);
  std::vector<int32_t> cu_seqlens, slots(kSequences, 0);
  for (int64_t i = 0; i <= kSequences; ++i) cu_seqlens.push_back(static_cast<int32_t>(i * kTokens / kSequences));
  std::vector<float> o(v.size());

  using clover::DType;
  using clover::TensorView;
  const TensorView q_view(q.data(), DType::kFloat32, {kTokens, kHeads, kSize});
  const TensorView k_view(k.data(), DType::kFloat32, {kTokens, kHeads, kSize});
  const TensorView v_view(v.data(), DType::kFloat32, {kTokens, kHeads, kSize});
  const TensorView g_view(g.data(), DType::kFloat32, {kTokens, kHeads});
  const TensorView beta_view(beta.data(), DType::kFloat32, {kTokens, kHeads});
  const TensorView state_view(state.data(), DType::kFloat32, {1, kHeads, kSize, kSize});
  const TensorView cu_view(cu_seqlens.data(), DType::kInt32, {kSequences + 1});
  const TensorView slots_view(slots.data(), DType::kInt32, {kSequences});
  const TensorView o_view(o.data(), DType::kFloat32, {kTokens, kHeads, kSize});
  const operators::Workspace workspace(clover::preview_gated_delta_rule_workspace_size(
      {}, q_view, k_view, v_view, g_view, beta_view, state_view, cu_view, slots_view, std::nullopt, true,
      clover::Read::kBidirectional, std::nullopt, o_view));
  clover::preview_gated_delta_rule(workspace.handle(), q_view, k_view, v_view, g_view, beta_view, state_view, cu_view,
                                   slots_view, std::nullopt, true, clover::Read::kBidirectional, std::nullopt, o_view);
  CHECK(workspace.guard_intact());
  return o;
}

// More threads than this machine may have processors, before the backend asks.
const int kPool = setenv("OMP_NUM_THREADS", "4", 1);

}  // namespace

TEST(first_calls_from_many_threads) {
  // Looking at the registry, and looking for plugins once more, disturbs nobody.
  std::atomic<bool> done{false};
  std::thread observer([&] {
    while (!done) {
      CHECK_CONTAINS(clover::describe(), "\"name\": \"cpu\"");
      clover::discover_plugins();
      CHECK(clover::supports(clover::Op::kCast, {}));
    }
  });
  run_threads(run_all);
  done = true;
  observer.join();
}

// The pool helps whoever comes first; the others work alone, and get the same bits.
TEST(the_backends_threads_are_shared) {
  CHECK_EQUAL(kPool, 0);
  std::vector<float> results[kThreads];
  run_threads([&](int thread) {
    for (int round = 0; round < kRounds; ++round) results[thread] = large_preview();
  });
  for (const std::vector<float>& result : results) CHECK(result == results[0]);
  CHECK(results[0].back() != 0);
}
