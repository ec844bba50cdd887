// Runs Clover's kernels through InfiniRT's driver interface, for a program that has InfiniRT.
//
//   #include <infini/rt.h>                       // or wherever InfiniRT declares its driver
//   #include <clover/interop/infinirt.h>
//   clover::interop::use_infinirt<::infini::rt::driver::Driver<kNvidia>>("nvidia");
//
// The template parameter is a class with InfiniRT's names: types Module, Function and Stream, the value kSuccess, the
// constants kFuncAttributeSharedSizeBytes and kFuncAttributeMaxDynamicSharedSizeBytes, and the static functions
// ModuleLoadData, ModuleUnload, ModuleGetFunction, FuncGetAttribute, FuncSetAttribute, FuncSetCacheConfig and
// LaunchKernel. Modules, functions and launches go through it; devices, contexts and streams stay with the vendor's
// driver, on which InfiniRT stands too.
//
// This header is tested against a stand-in with that interface (tests/driver), not against InfiniRT itself.
#pragma once

#include <clover/driver.h>
#include <clover/error.h>
#include <clover/plugin.h>
#include <clover/registry.h>

#include <cstring>
#include <string>
#include <type_traits>

namespace clover::interop {
namespace detail {

// InfiniRT's handles are the vendor's pointers; this carries one over without looking inside.
template <class To, class From>
To handle(From from) {
  static_assert(sizeof(To) == sizeof(From) && sizeof(To) == sizeof(void*), "a driver handle must be pointer-sized");
  static_assert(std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>);
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <class Infini>
struct Forward {
  template <class Answer>
  static driver::Status status(Answer answer) {
    return answer == Infini::kSuccess ? driver::kSuccess : static_cast<driver::Status>(answer);
  }

  static driver::Status module_load_data(driver::Module* module, const void* image) {
    typename Infini::Module theirs{};
    const auto answer = Infini::ModuleLoadData(&theirs, image);
    *module = handle<driver::Module>(theirs);
    return status(answer);
  }
  static driver::Status module_unload(driver::Module module) {
    return status(Infini::ModuleUnload(handle<typename Infini::Module>(module)));
  }
  static driver::Status module_get_function(driver::Function* function, driver::Module module, const char* name) {
    typename Infini::Function theirs{};
    const auto answer = Infini::ModuleGetFunction(&theirs, handle<typename Infini::Module>(module), name);
    *function = handle<driver::Function>(theirs);
    return status(answer);
  }
  static driver::Status func_get_attribute(int* value, int attribute, driver::Function function) {
    const auto theirs = handle<typename Infini::Function>(function);
    if (attribute == driver::kFuncAttributeSharedSizeBytes)
      return status(Infini::FuncGetAttribute(value, Infini::kFuncAttributeSharedSizeBytes, theirs));
    if (attribute == driver::kFuncAttributeMaxDynamicSharedSizeBytes)
      return status(Infini::FuncGetAttribute(value, Infini::kFuncAttributeMaxDynamicSharedSizeBytes, theirs));
    return driver::kNotSupported;
  }
  static driver::Status func_set_attribute(driver::Function function, int attribute, int value) {
    if (attribute != driver::kFuncAttributeMaxDynamicSharedSizeBytes) return driver::kNotSupported;
    return status(Infini::FuncSetAttribute(handle<typename Infini::Function>(function),
                                           Infini::kFuncAttributeMaxDynamicSharedSizeBytes, value));
  }
  static driver::Status func_set_cache_config(driver::Function function, int config) {
    if (config != driver::kFuncCachePreferShared) return driver::kNotSupported;
    return status(
        Infini::FuncSetCacheConfig(handle<typename Infini::Function>(function), Infini::kFuncCachePreferShared));
  }
  static driver::Status launch_kernel(driver::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                      driver::Stream stream, void** arguments, void** extra) {
    return status(Infini::LaunchKernel(handle<typename Infini::Function>(function), grid_x, grid_y, grid_z, block_x,
                                       block_y, block_z, shared_bytes, handle<typename Infini::Stream>(stream),
                                       arguments, extra));
  }
};

}  // namespace detail

// The table that forwards to `Infini`; every other function in it is null.
template <class Infini>
driver::Table infinirt_table() {
  using Forward = detail::Forward<Infini>;
  driver::Table table{};
  table.struct_size = sizeof(table);
  table.ModuleLoadData = Forward::module_load_data;
  table.ModuleUnload = Forward::module_unload;
  table.ModuleGetFunction = Forward::module_get_function;
  table.FuncGetAttribute = Forward::func_get_attribute;
  table.FuncSetAttribute = Forward::func_set_attribute;
  table.FuncSetCacheConfig = Forward::func_set_cache_config;
  table.LaunchKernel = Forward::launch_kernel;
  return table;
}

// Makes the active plugin of a backend ("nvidia", "hygon") use `Infini`. Call it before the backend's first operator:
// later it throws InvalidArgument.
template <class Infini>
void use_infinirt(const std::string& backend) {
  discover_plugins();
  const std::string library = "libclover_ops_" + backend + ".so";
  void* plugin = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (plugin == nullptr)
    throw Unsupported("use_infinirt: backend `" + backend + "` is not active; clover::describe() says why");
  const auto set = reinterpret_cast<decltype(&clover_plugin_set_driver)>(dlsym(plugin, "clover_plugin_set_driver"));
  if (set == nullptr) throw Unsupported("use_infinirt: backend `" + backend + "` takes no driver from outside");
  const driver::Table table = infinirt_table<Infini>();
  char message[512] = "";
  const int32_t status = set(&table, message, sizeof(message));
  if (status != CLOVER_OK) throw InvalidArgument("use_infinirt: " + std::string(message));
}

}  // namespace clover::interop
