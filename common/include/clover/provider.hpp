// Typed sugar over clover/plugin.h for a provider's author: CLOVER_PROVIDER turns typed functions into a table entry.
#pragma once

#include <clover/plugin.h>

#include <cstdarg>
#include <cstdio>
#include <exception>

namespace clover {

// Writes the reason why a provider refuses or fails into the call and returns `status` (for accept: 0).
[[gnu::format(printf, 3, 4)]] inline int32_t refuse(const clover_call& call, int32_t status, const char* format, ...) {
  if (call.message != nullptr && call.message_capacity > 0) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(call.message, call.message_capacity, format, arguments);
    va_end(arguments);
  }
  return status;
}

namespace detail {

template <class Args, class Dims>
struct ProviderFunctions {
  using Accept = int32_t (*)(const clover_call&, const Args&, const Dims&);
  using Workspace = uint64_t (*)(const clover_call&, const Args&, const Dims&);
  using Run = int32_t (*)(const clover_call&, const Args&, const Dims&);

  template <Accept accept>
  static int32_t call_accept(const clover_call* call, const void* args, const void* dims) {
    return accept(*call, *static_cast<const Args*>(args), *static_cast<const Dims*>(dims));
  }

  template <Workspace workspace>
  static uint64_t call_workspace(const clover_call* call, const void* args, const void* dims) {
    return workspace(*call, *static_cast<const Args*>(args), *static_cast<const Dims*>(dims));
  }

  // No exception may leave a plugin: what escapes a provider becomes an internal error.
  template <Run run>
  static int32_t call_run(const clover_call* call, const void* args, const void* dims) {
    try {
      return run(*call, *static_cast<const Args*>(args), *static_cast<const Dims*>(dims));
    } catch (const std::exception& error) {
      return refuse(*call, CLOVER_INTERNAL, "%s", error.what());
    } catch (...) {
      return refuse(*call, CLOVER_INTERNAL, "an exception of unknown type");
    }
  }

  template <Accept accept, Workspace workspace, Run run>
  static constexpr clover_provider make(uint32_t op, int32_t slot, const char* name) {
    clover_provider provider{};
    provider.struct_size = sizeof(clover_provider);
    provider.op = op;
    provider.slot = slot;
    provider.name = name;
    if constexpr (accept != nullptr) provider.accept = call_accept<accept>;
    if constexpr (workspace != nullptr) provider.workspace_bytes = call_workspace<workspace>;
    provider.run = call_run<run>;
    return provider;
  }
};

}  // namespace detail
}  // namespace clover

// CLOVER_PROVIDER(cast, 0, "native", nullptr, nullptr, run_cast): accept and workspace may be nullptr.
// backend.toml lists the same operator and slot; the plugin's generated table refers to this symbol.
#define CLOVER_PROVIDER(op_name, slot_number, provider_name, accept_fn, workspace_fn, run_fn)      \
  extern const clover_provider clover_provider_##op_name##_##slot_number;                          \
  const clover_provider clover_provider_##op_name##_##slot_number =                                \
      ::clover::detail::ProviderFunctions<clover_##op_name##_args, clover_##op_name##_dims>::make< \
          accept_fn, workspace_fn, run_fn>(CLOVER_OP_##op_name, slot_number, provider_name)
