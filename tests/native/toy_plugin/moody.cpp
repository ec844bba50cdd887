// A backend whose providers of rearrange misbehave, each slot in its own way.
#include <clover/provider.hpp>
#include <stdexcept>

namespace {

using Args = clover_rearrange_args;
using Dims = clover_rearrange_dims;

int32_t throws_an_error(const clover_call&, const Args&, const Dims&) {
  throw std::runtime_error("thrown in a plugin");
}
int32_t throws_a_number(const clover_call&, const Args&, const Dims&) {
  throw 42;
}
int32_t driver_fails(const clover_call& call, const Args&, const Dims&) {
  return clover::refuse(call, CLOVER_DRIVER_ERROR, "the driver said %d", 719);
}
int32_t compile_fails(const clover_call& call, const Args&, const Dims&) {
  return clover::refuse(call, CLOVER_COMPILE_ERROR, "no kernel for %s", "gfx000");
}
int32_t unknown_status(const clover_call& call, const Args&, const Dims&) {
  return clover::refuse(call, 4711, "odd");
}
int32_t succeeds(const clover_call& call, const Args&, const Dims&) {
  return call.workspace_bytes >= 512 ? CLOVER_OK : CLOVER_INTERNAL;
}

int32_t refuses(const clover_call& call, const Args&, const Dims&) {
  return clover::refuse(call, 0, "not in the mood");
}
int32_t accept_throws(const clover_call&, const Args&, const Dims&) {
  throw std::runtime_error("thrown while asked");
}
uint64_t wants_512(const clover_call&, const Args&, const Dims&) {
  return 512;
}

}  // namespace

CLOVER_PROVIDER(rearrange, 1, "throws-an-error", nullptr, nullptr, throws_an_error);
CLOVER_PROVIDER(rearrange, 2, "throws-a-number", nullptr, nullptr, throws_a_number);
CLOVER_PROVIDER(rearrange, 3, "driver-fails", nullptr, nullptr, driver_fails);
CLOVER_PROVIDER(rearrange, 4, "compile-fails", nullptr, nullptr, compile_fails);
CLOVER_PROVIDER(rearrange, 5, "unknown-status", nullptr, nullptr, unknown_status);
CLOVER_PROVIDER(rearrange, 6, "refuses", refuses, nullptr, succeeds);
CLOVER_PROVIDER(rearrange, 7, "accept-throws", accept_throws, nullptr, succeeds);
CLOVER_PROVIDER(rearrange, 8, "wants-workspace", nullptr, wants_512, succeeds);

extern "C" const clover_plugin* clover_plugin_entry(void) {
  static const clover_provider* const providers[] = {
      &clover_provider_rearrange_1, &clover_provider_rearrange_2, &clover_provider_rearrange_3,
      &clover_provider_rearrange_4, &clover_provider_rearrange_5, &clover_provider_rearrange_6,
      &clover_provider_rearrange_7, &clover_provider_rearrange_8,
  };
  static clover_plugin plugin{};
  plugin.struct_size = sizeof(plugin);
  plugin.abi_version = CLOVER_ABI_VERSION;
  plugin.device_type = CLOVER_ROCM;
  plugin.name = "moody";
  plugin.version = TOY_VERSION;
  plugin.providers = providers;
  plugin.provider_count = 8;
  return &plugin;
}
