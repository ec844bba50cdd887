#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "check.hpp"

namespace check {
namespace {

std::atomic<int> checks{0};
std::atomic<int> failures{0};
std::mutex output;
thread_local std::vector<std::string> contexts;

}  // namespace

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

Context::Context(const std::string& text) {
  contexts.push_back(text);
}
Context::~Context() {
  contexts.pop_back();
}

void record(bool passed, const char* file, int line, const std::string& what) {
  ++checks;
  if (passed) return;
  ++failures;
  const char* slash = std::strrchr(file, '/');
  std::string where;
  for (const std::string& context : contexts) where += " [" + context + "]";
  const std::lock_guard<std::mutex> lock(output);
  std::printf("%s:%d:%s %s\n", slash == nullptr ? file : slash + 1, line, where.c_str(), what.c_str());
}

}  // namespace check

int main() {
  // What somebody has set for programs of theirs is not for tests.
  for (const char* name : {"CLOVER_OPS_BACKENDS", "CLOVER_OPS_PLUGIN_PATH", "CLOVER_OPS_TRACE", "CLOVER_OPS_DEBUG"})
    unsetenv(name);
  for (const check::Test& test : check::tests()) {
    const int before = check::failures;
    try {
      test.body();
    } catch (const std::exception& error) {
      check::record(false, test.name, 0, std::string("left by an exception: ") + error.what());
    } catch (...) {
      check::record(false, test.name, 0, "left by an exception of unknown type");
    }
    std::printf("%s %s\n", check::failures == before ? "ok  " : "FAIL", test.name);
  }
  std::printf("%zu tests, %d checks, %d failures\n", check::tests().size(), check::checks.load(),
              check::failures.load());
  return check::failures == 0 && check::checks > 0 ? 0 : 1;
}
