// What the core library asks of a SIMT plugin. CLOVER_SIMT_NAME is the backend's name.
#include <clover/plugin.h>

#include <clover_backend/registration.hpp>

namespace {

int32_t device_count() {
  return 1;
}

const clover_plugin* plugin() {
  static const clover_plugin table = [] {
    clover_plugin entry{};
    entry.struct_size = sizeof(entry);
    entry.abi_version = CLOVER_ABI_VERSION;
    entry.device_type = CLOVER_CPU;
    entry.name = CLOVER_SIMT_NAME;
    entry.version = clover::backend::version;
    entry.providers = clover::backend::providers;
    entry.provider_count = clover::backend::provider_count;
    entry.device_count = device_count;
    return entry;
  }();
  return &table;
}

}  // namespace

extern "C" const clover_plugin* clover_plugin_entry(void) {
  return plugin();
}
