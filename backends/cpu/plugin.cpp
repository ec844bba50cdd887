// What the core library asks of the plugin.
#include <clover/plugin.h>

#include <clover_backend/registration.hpp>
#include <cstdio>

#include "isa.hpp"
#include "thread_pool.hpp"

namespace clover::cpu {
namespace {

int32_t device_count() {
  return 1;
}

int32_t warmup(int32_t device, char* message, uint64_t capacity) {
  const Selection& chosen = selection();
  if (device == 0 && chosen.kernels != nullptr) return CLOVER_OK;
  if (message == nullptr || capacity == 0) return CLOVER_UNSUPPORTED;
  if (device != 0) {
    std::snprintf(message, capacity, "there is no cpu:%d, only cpu:0", static_cast<int>(device));
  } else {
    std::snprintf(message, capacity, "%s", chosen.error);
  }
  return CLOVER_UNSUPPORTED;
}

const char* describe() {
  static thread_local char text[384];
  const Selection& chosen = selection();
  std::snprintf(text, sizeof(text), "isa: %s%s\nthreads: %d\n", chosen.kernels == nullptr ? "none: " : chosen.isa,
                chosen.error, thread_count());
  return text;
}

const clover_plugin* plugin() {
  static const clover_plugin table = [] {
    clover_plugin entry{};
    entry.struct_size = sizeof(entry);
    entry.abi_version = CLOVER_ABI_VERSION;
    entry.device_type = CLOVER_CPU;
    entry.name = "cpu";
    entry.version = backend::version;
    entry.providers = backend::providers;
    entry.provider_count = backend::provider_count;
    entry.device_count = device_count;
    entry.warmup = warmup;
    entry.describe = describe;
    return entry;
  }();
  return &table;
}

}  // namespace
}  // namespace clover::cpu

extern "C" const clover_plugin* clover_plugin_entry(void) {
  return clover::cpu::plugin();
}
