// What the core library asks of the plugin.
#include "common/device/plugin.hpp"

extern "C" const clover_plugin* clover_plugin_entry(void) {
  return clover::device::plugin();
}
