// The code that GPU backends share (common/device), on HIP, with two toy code objects. Each check says what failed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/device/code_objects.hpp"
#include "common/device/device.hpp"
#include "common/device/kernels.hpp"
#include "common/device/launcher.hpp"

namespace clover::device {

const CodeObjects& code_objects() {
  static const char* const scale[] = {"toy_scale", "toy_add"};
  static const char* const other[] = {"toy_other"};
  static const char* const narrow[] = {"toy_narrow"};
  static const char* const lacking[] = {"toy_lacking"};
  static const char* const foreign[] = {"toy_foreign"};
  static const size_t bytes[] = {8, 8};
  constexpr ImageKind kBinary = ImageKind::kBinary;
  static const Image images[] = {{"gfx928", kBinary, "HSACO gfx928 toy_scale toy_add", scale, 2, 64, bytes},
                                 {"gfx906", kBinary, "HSACO gfx906 toy_scale toy_add", scale, 2, 64, bytes}};
  static const Image others[] = {{"gfx928", kBinary, "HSACO gfx928 toy_other", other, 1, 64, nullptr}};
  // Each with one mistake: lanes, a kernel that is not there, an object for another architecture under a wrong name.
  static const Image narrows[] = {{"gfx906", kBinary, "HSACO gfx906 toy_narrow", narrow, 1, 32, nullptr}};
  static const Image lackings[] = {{"gfx906", kBinary, "HSACO gfx906 toy_something", lacking, 1, 64, nullptr}};
  static const Image foreigns[] = {{"gfx906", kBinary, "HSACO gfx936 toy_foreign", foreign, 1, 64, nullptr}};
  static const Unit units[] = {{"toy", images, 2, nullptr, nullptr},
                               {"other", others, 1, nullptr, nullptr},
                               {"narrow", narrows, 1, nullptr, nullptr},
                               {"lacking", lackings, 1, nullptr, nullptr},
                               {"foreign", foreigns, 1, nullptr, nullptr}};
  static const CodeObjects all = {units, 5, "none", "gfx906 gfx928", "gfx906 (64 lanes), gfx928 (64 lanes)"};
  return all;
}

namespace {

#define CHECK(condition)                                  \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                       \
    }                                                     \
  } while (false)

// The stand-in's own functions, out of the library that the driver layer found.
template <class Function>
Function standin(const char* name) {
  void* library = dlopen(Driver::path().c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(library, name));
}
int calls(const char* name) {
  return standin<int (*)(const char*)>("standin_calls")(name);
}
std::string launches() {
  return standin<const char* (*)()>("standin_launches")();
}
void* stream(int ordinal, int capturing) {
  return standin<void* (*)(int, int)>("standin_stream")(ordinal, capturing);
}

void expect(clover_status status, const char* words, const std::function<void()>& body) {
  try {
    body();
  } catch (const Failure& failure) {
    if (failure.status() == status && std::strstr(failure.what(), words) != nullptr) return;
    std::printf("expected %d `%s`, got %d `%s`\n", status, words, failure.status(), failure.what());
    std::exit(1);
  }
  std::printf("expected `%s`, nothing was thrown\n", words);
  std::exit(1);
}

native::Launch toy(const char* kernel, uint64_t value) {
  native::Launch launch;
  launch.kernel = kernel;
  launch.grid[0] = 3;
  launch.block[0] = 128;
  launch.set_params(value);
  return launch;
}

void run() {
  CHECK(devices().size() == 2);
  Device& first = device(0);
  Device& second = device(1);
  CHECK(first.architecture() == "gfx906" && first.features() == ":sramecc+:xnack-");
  CHECK(first.machine().warp_size == 64 && first.machine().compute_capability == 0);
  CHECK(first.machine().multiprocessors == 60 && first.machine().shared_bytes_optin == 64 * 1024);
  expect(CLOVER_INVALID_ARGUMENT, "rocm:2 does not exist", [] { device(2); });

  // The device that was current is so again.
  int current = -1;
  void* token = second.enter(stream(1, 0));
  Driver::table().GetDevice(&current);
  CHECK(current == 1);
  Device::leave(token);
  Driver::table().GetDevice(&current);
  CHECK(current == 0);
  expect(CLOVER_INVALID_ARGUMENT, "stream belongs to rocm:0 but the tensors are on rocm:1",
         [&] { second.enter(stream(0, 0)); });
  Driver::table().GetDevice(&current);
  CHECK(current == 0);

  // Nothing of a plan runs when its second kernel cannot.
  native::Launch plan[] = {toy("toy_scale", 5), toy("toy_add", 7)};
  expect(CLOVER_COMPILE_ERROR, "the stream is being captured", [&] { launch(first, stream(0, 1), plan, 2); });
  plan[1].kernel = "toy_other";
  expect(CLOVER_COMPILE_ERROR, "was not compiled for rocm:0 (Stand-in DCU, architecture gfx906)",
         [&] { launch(first, nullptr, plan, 2); });
  plan[1].kernel = "toy_missing";
  expect(CLOVER_COMPILE_ERROR, "is not among the plugin's code objects", [&] { launch(first, nullptr, plan, 2); });
  plan[1] = toy("toy_add", 7);
  plan[1].block[0] = 257;
  expect(CLOVER_INTERNAL, "a block of 257 x 1 x 1 threads; this kernel takes up to 256 on rocm:0",
         [&] { launch(first, nullptr, plan, 2); });
  plan[1] = toy("toy_add", 7);
  plan[1].grid[1] = 65536;
  expect(CLOVER_INTERNAL, "a grid of 3 x 65536 x 1 blocks", [&] { launch(first, nullptr, plan, 2); });
  plan[1].grid[1] = 0;
  expect(CLOVER_INTERNAL, "a grid of 3 x 0 x 1 blocks", [&] { launch(first, nullptr, plan, 2); });
  plan[1] = toy("toy_add", 7);
  plan[1].shared_bytes = 64 * 1024 + 1;
  expect(CLOVER_INTERNAL, "65537 bytes of shared memory", [&] { launch(first, nullptr, plan, 2); });
  plan[1] = toy("toy_add", 7);
  plan[1].param_bytes = 16;
  expect(CLOVER_COMPILE_ERROR, "takes an argument of 8 bytes but is given 16",
         [&] { launch(first, nullptr, plan, 2); });
  CHECK(calls("hipModuleLoadData") == 1);
  plan[1] = toy("toy_narrow", 7);
  expect(CLOVER_COMPILE_ERROR, "is for warps of 32 lanes, but rocm:0 (Stand-in DCU) has 64",
         [&] { launch(first, nullptr, plan, 2); });
  CHECK(calls("hipModuleLoadData") == 1);
  plan[1] = toy("toy_lacking", 7);
  expect(CLOVER_DRIVER_ERROR, "hipModuleGetFunction failed for kernel toy_lacking",
         [&] { launch(first, nullptr, plan, 2); });
  CHECK(calls("hipModuleUnload") == 1);
  plan[1] = toy("toy_foreign", 7);
  expect(CLOVER_DRIVER_ERROR, "the plugin holds no code for this device", [&] { launch(first, nullptr, plan, 2); });
  CHECK(launches().empty());
  CHECK(calls("hipModuleLoadData") == 3);

  // Loaded, it can be captured; eight threads load the other device's copy once.
  plan[1] = toy("toy_add", 7);
  launch(first, stream(0, 1), plan, 2);
  CHECK(launches().find("\"kernel\": \"toy_add\"") != std::string::npos);
  CHECK(launches().find("\"params\": \"0700000000000000\"") != std::string::npos);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      void* entered = second.enter(nullptr);
      launch(second, nullptr, plan, 2);
      Device::leave(entered);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(calls("hipModuleLoadData") == 4);
  CHECK(calls("hipModuleLaunchKernel") == 2 + 16);
  CHECK(first.kernels().loaded_modules() == 1 && loaded_module_count() == 2);
  expect(CLOVER_COMPILE_ERROR, "is for warps of 32 lanes", [&] { first.kernels().load_all(); });
}

}  // namespace
}  // namespace clover::device

int main() {
  try {
    clover::device::run();
  } catch (const clover::device::Failure& failure) {
    std::printf("unexpected: %s\n", failure.what());
    return 1;
  }
}
