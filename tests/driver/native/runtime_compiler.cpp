// Launches a toy kernel that the "plugin" has only as source, from as many threads as the argument says; prints how
// many launches the stand-in driver saw, or the error. `capture` in place of a number launches on a stream being
// captured.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "common/device/code_objects.hpp"
#include "common/device/device.hpp"
#include "common/device/kernels.hpp"
#include "common/device/launcher.hpp"

namespace clover::device {

const CodeObjects& code_objects() {
  static const char* const names[] = {"toy_scale", "toy_add"};
  static const size_t bytes[] = {8, 8};
  static const Image images[] = {{"gfx906", ImageKind::kBinary, "HSACO gfx906 toy_scale toy_add", names, 2, 64, bytes}};
  static const Unit units[] = {{"native/toy", images, 1, "toy.hip", TOY_DIGEST}};
  static const CodeObjects all = {units, 1, "none", "gfx906", "gfx906 (64 lanes)"};
  return all;
}

namespace {

template <class Function>
Function standin(const char* name) {
  return reinterpret_cast<Function>(dlsym(dlopen(Driver::path().c_str(), RTLD_NOW | RTLD_NOLOAD), name));
}

void launch_one(void* stream) {
  native::Launch one;
  one.kernel = "toy_add";
  one.block[0] = 64;
  one.set_params(uint64_t{7});
  launch(device(0), stream, &one, 1);
}

}  // namespace
}  // namespace clover::device

int main(int, char** arguments) {
  using namespace clover::device;
  try {
    device(0);
    if (std::strcmp(arguments[1], "capture") == 0) {
      launch_one(standin<void* (*)(int, int)>("standin_stream")(0, 1));
    } else {
      std::vector<std::thread> threads;
      for (int i = 1; i < std::atoi(arguments[1]); ++i) threads.emplace_back([] { launch_one(nullptr); });
      launch_one(nullptr);
      for (std::thread& thread : threads) thread.join();
    }
  } catch (const Failure& failure) {
    std::printf("error %d: %s\n", failure.status(), failure.what());
    return 0;
  }
  std::printf("%d launches, %d loads\n", standin<int (*)(const char*)>("standin_calls")("hipModuleLaunchKernel"),
              standin<int (*)(const char*)>("standin_calls")("hipModuleLoadData"));
}
