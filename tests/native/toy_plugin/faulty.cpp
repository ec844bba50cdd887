// A plugin that is what its file's name says: libtoy_wrong_abi.so has the wrong ABI, and so on; any other name is that
// of a sound plugin. When it is loaded it leaves a file of its name in the folder TOY_MARKERS, so that a test can tell
// whether anybody opened it.
#include <clover/plugin.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

// "wrong_abi" of ".../libtoy_wrong_abi.so"
const std::string& fault() {
  static const std::string name = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&clover_plugin_entry), &info);
    const std::string path = info.dli_fname, prefix = "libtoy_";
    const size_t first = path.rfind(prefix) + prefix.size();
    return path.substr(first, path.rfind(".so") - first);
  }();
  return name;
}

struct Marker {
  Marker() {
    if (const char* folder = std::getenv("TOY_MARKERS")) std::ofstream(std::string(folder) + "/" + fault()) << "loaded";
  }
} marker;

int32_t run(const clover_call*, const void*, const void*) {
  return CLOVER_OK;
}

clover_provider provider(uint32_t op, int32_t slot, const char* name) {
  clover_provider result{};
  result.struct_size = sizeof(result);
  result.op = op;
  result.slot = slot;
  result.name = name;
  result.run = run;
  return result;
}

}  // namespace

extern "C" const clover_plugin* clover_plugin_entry(void) {
  static clover_provider first = provider(CLOVER_OP_cast, 0, "plain");
  static clover_provider second = provider(CLOVER_OP_cast, 1, "plain");
  static const clover_provider* const providers[] = {&first, &second};
  static clover_plugin plugin{};
  plugin.struct_size = sizeof(plugin);
  plugin.abi_version = CLOVER_ABI_VERSION;
  plugin.device_type = CLOVER_ROCM;
  plugin.name = fault().c_str();
  plugin.version = TOY_VERSION;
  plugin.providers = providers;
  plugin.provider_count = 1;

  if (fault() == "null_entry") return nullptr;
  if (fault() == "small_struct") plugin.struct_size = 16;
  if (fault() == "wrong_abi") plugin.abi_version = 99;
  if (fault() == "wrong_name") plugin.name = "somebody_else";
  if (fault() == "no_name") plugin.name = nullptr;
  if (fault() == "wrong_version") plugin.version = "0.0.1";
  if (fault() == "wrong_device") plugin.device_type = CLOVER_CUDA;
  if (fault() == "fewer_providers") plugin.provider_count = 0;
  if (fault() == "more_providers") plugin.provider_count = 2;
  if (fault() == "other_operator") first.op = CLOVER_OP_rearrange;
  if (fault() == "other_provider_name") first.name = "fancy";
  if (fault() == "unknown_operator") first.op = 999;
  if (fault() == "no_run") first.run = nullptr;
  if (fault() == "small_provider") first.struct_size = 16;
  if (fault() == "slot_twice") {
    plugin.provider_count = 2;
    second.slot = 0;
  }
  return &plugin;
}
