// What is installed and what works: plugins, capability queries, warm-up.
#pragma once

#include <clover/abi_ops.h>
#include <clover/error.h>
#include <clover/tensor.h>

#include <string>

namespace clover {

inline std::string version() {
  return clover_version();
}

// Loads the plugin that a manifest describes; throws the reason when it cannot be used.
inline void load_plugin(const std::string& manifest_path) {
  check(clover_load_plugin(manifest_path.c_str()));
}

// Looks for plugins again: beside the core library and in CLOVER_OPS_PLUGIN_PATH.
inline void discover_plugins() {
  check(clover_discover_plugins());
}

// Loads all prebuilt kernels for a device, so that calls on it can be captured in a graph.
inline void warmup(Device device) {
  check(clover_warmup(device.type, device.id));
}

// The registry as JSON, as `clover-ops doctor --json` shows it.
inline std::string describe() {
  std::string text;
  check(clover_describe(
      [](void* out, const char* data, uint64_t size) { static_cast<std::string*>(out)->assign(data, size); }, &text));
  return text;
}

}  // namespace clover
