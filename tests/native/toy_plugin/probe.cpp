// A probe that finds what its file's name says: libprobe_one.so a device, libprobe_none.so none and tells why,
// libprobe_silent.so none.
#include <clover/plugin.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

extern "C" int32_t clover_plugin_probe(char* message, uint64_t capacity) {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&clover_plugin_probe), &info);
  if (std::strstr(info.dli_fname, "libprobe_none.so")) std::snprintf(message, capacity, "the toy box is empty");
  return std::strstr(info.dli_fname, "libprobe_one.so") ? 1 : 0;
}
