// Prints what clover/driver.h makes of the HIP library that it finds: one `key: value` a line. With `preload PATH` that
// library is in the process first.
#include <clover/driver.h>

#include <cstdio>
#include <cstring>

using Driver = clover::driver::Driver<CLOVER_ROCM>;
using clover::driver::Attribute;

int main(int count, char** arguments) {
  if (count == 3 && std::strcmp(arguments[1], "preload") == 0 && dlopen(arguments[2], RTLD_NOW) == nullptr) {
    std::printf("preload: %s\n", dlerror());
    return 1;
  }
  std::printf("error: %s\n", Driver::Open().c_str());
  if (!Driver::Open().empty()) return 0;
  std::printf("path: %s\n", Driver::path().c_str());
  std::printf("numbering: %s\n", Driver::DetectNumbering(0) ? "known" : "unknown");
  for (const auto& [name, attribute] : {std::pair{"warp", Attribute::kWarpSize},
                                        {"multiprocessors", Attribute::kMultiprocessorCount},
                                        {"threads", Attribute::kMaxThreadsPerBlock},
                                        {"shared", Attribute::kMaxSharedMemoryPerBlock}}) {
    int value = -1;
    const int status = Driver::DeviceGetAttribute(&value, attribute, 0);
    std::printf("%s: %d %d\n", name, status, value);
  }
  std::string architecture;
  const int status = Driver::DeviceGetArchitecture(&architecture, 0);
  std::printf("architecture: %d %s\n", status, architecture.c_str());
  std::printf("text: %s\n", Driver::ErrorText(1).c_str());
  std::printf("call: %s %s\n", Driver::CallName("LaunchKernel"), Driver::CallName("ModuleLoadData"));
  std::printf("opt-in: %d\n", Driver::FuncSetAttribute(nullptr, Driver::kFuncAttributeMaxDynamicSharedSizeBytes, 1));
}
