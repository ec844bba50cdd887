// Preloaded, it hides every HIP library of the machine: what is opened by a bare name is not found, and none is in the
// process. Libraries that a test names by their path stay.
#include <dlfcn.h>

#include <cstring>
#include <string>

extern "C" void* dlopen(const char* name, int flags) {
  using Open = void* (*)(const char*, int);
  static const Open open = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  const bool hidden = name != nullptr && std::strchr(name, '/') == nullptr &&
                      (std::strncmp(name, "libamdhip64", 11) == 0 || std::strncmp(name, "libgalaxyhip", 12) == 0);
  return open(hidden ? ("/nowhere/" + std::string(name)).c_str() : name, flags);
}
