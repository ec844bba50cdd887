// Typed sugar over clover/plugin.h for a provider's author: CLOVER_PROVIDER turns typed functions into a table entry.
#pragma once

#include <clover/plugin.h>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <type_traits>

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

// By type, since under -fsanitize=undefined GCC holds no comparison of function pointers for constant.
template <class T, T value>
inline constexpr bool kIsNull = std::is_same_v<std::integral_constant<T, value>, std::integral_constant<T, nullptr>>;

template <class Args, class Dims>
struct ProviderFunctions {
  using Accept = int32_t (*)(const clover_call&, const Args&, const Dims&);
  using Workspace = uint64_t (*)(const clover_call&, const Args&, const Dims&);
  using Run = int32_t (*)(const clover_call&, const Args&, const Dims&);

  // No exception may leave a plugin: what escapes a provider is a refusal, or an internal error of the call.
  template <auto function>
  static int32_t guarded(const clover_call* call, const void* args, const void* dims, int32_t status) noexcept {
    try {
      return function(*call, *static_cast<const Args*>(args), *static_cast<const Dims*>(dims));
    } catch (const std::exception& error) {
      return refuse(*call, status, "%s", error.what());
    } catch (...) {
      return refuse(*call, status, "an exception of unknown type");
    }
  }

  template <Accept accept>
  static int32_t call_accept(const clover_call* call, const void* args, const void* dims) {
    return guarded<accept>(call, args, dims, 0);
  }

  // A size cannot say that it failed: it is arithmetic on shapes, and must not throw.
  template <Workspace workspace>
  static uint64_t call_workspace(const clover_call* call, const void* args, const void* dims) noexcept {
    return workspace(*call, *static_cast<const Args*>(args), *static_cast<const Dims*>(dims));
  }

  template <Run run>
  static int32_t call_run(const clover_call* call, const void* args, const void* dims) {
    return guarded<run>(call, args, dims, CLOVER_INTERNAL);
  }

  template <Accept accept, Workspace workspace, Run run, Run prepare = nullptr>
  static constexpr clover_provider make(uint32_t op, int32_t slot, const char* name) {
    clover_provider provider{};
    provider.struct_size = sizeof(clover_provider);
    provider.op = op;
    provider.slot = slot;
    provider.name = name;
    if constexpr (!kIsNull<Accept, accept>) provider.accept = call_accept<accept>;
    if constexpr (!kIsNull<Workspace, workspace>) provider.workspace_bytes = call_workspace<workspace>;
    provider.run = call_run<run>;
    if constexpr (!kIsNull<Run, prepare>) provider.prepare = call_run<prepare>;
    return provider;
  }
};

}  // namespace detail
}  // namespace clover

// CLOVER_PROVIDER(cast, 0, "native", nullptr, nullptr, run_cast): accept and workspace may be nullptr.
// backend.toml lists the same operator and slot; the plugin's generated table refers to this symbol.
#define CLOVER_PROVIDER(op_name, slot_number, provider_name, accept_fn, workspace_fn, run_fn) \
  CLOVER_PREPARED_PROVIDER(op_name, slot_number, provider_name, accept_fn, workspace_fn, run_fn, nullptr)

// With a function that makes what run_fn needs.
#define CLOVER_PREPARED_PROVIDER(op_name, slot_number, provider_name, accept_fn, workspace_fn, run_fn, prepare_fn) \
  extern const clover_provider clover_provider_##op_name##_##slot_number;                                          \
  const clover_provider clover_provider_##op_name##_##slot_number =                                                \
      ::clover::detail::ProviderFunctions<clover_##op_name##_args, clover_##op_name##_dims>::make<                 \
          accept_fn, workspace_fn, run_fn, prepare_fn>(CLOVER_OP_##op_name, slot_number, provider_name)
