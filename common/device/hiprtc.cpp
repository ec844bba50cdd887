#include "hiprtc.hpp"

#include <climits>
#include <mutex>

#include "driver.hpp"

namespace clover::device {
namespace {

constexpr const char* kNames[] = {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so"};

// Where it may be, best first: the copy in the process, the driver's own library (it was part of it before HIP 5.3),
// DTK's, then the loader's own search.
std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (std::string loaded = driver::detail::loaded_library("libhiprtc.so"); !loaded.empty()) paths.push_back(loaded);
  if (Driver::Open().empty()) paths.push_back(Driver::path());
  if (const char* dtk = std::getenv("DTK_ROOT"); dtk != nullptr && *dtk != '\0')
    for (const char* folder : {"/hip/lib/", "/lib/", "/lib64/"})
      for (const char* name : kNames) paths.push_back(std::string(dtk) + folder + name);
  paths.insert(paths.end(), std::begin(kNames), std::end(kNames));
  return paths;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The compiler library that stands under this hiprtc: HIP opens it when it first compiles. Null where it is not sure to
// be the right one.
void* open_comgr(const std::string& hiprtc) {
  std::vector<std::string> paths{driver::detail::loaded_library("libamd_comgr.so")};
  char resolved[PATH_MAX];
  const std::string beside = realpath(hiprtc.c_str(), resolved) == nullptr ? hiprtc : resolved;
  for (const char* name : {"libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so"})
    paths.push_back(beside.substr(0, beside.rfind('/') + 1) + name);
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  }
  return nullptr;
}

// Older compilers share state between programs.
std::mutex& compiling() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

const Hiprtc& Hiprtc::get() {
  static const Hiprtc* found = new Hiprtc;  // never destroyed
  return *found;
}

Hiprtc::Hiprtc() {
  for (const std::string& path : candidates()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr && take(library, path)) {
      error_.clear();
      return;
    }
    const char* text = library == nullptr ? dlerror() : nullptr;
    const bool absent = text == nullptr || std::strstr(text, "No such file") != nullptr;
    if (error_.empty() || !absent) error_ = text == nullptr ? path + " is no hiprtc" : text;
  }
}

bool Hiprtc::take(void* library, const std::string& path) {
  path_ = path;
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && *map->l_name != '\0') path_ = map->l_name;
  find(library, "hiprtcGetErrorString", get_error_string_);
  return find(library, "hiprtcVersion", version_) && find(library, "hiprtcCreateProgram", create_) &&
         find(library, "hiprtcDestroyProgram", destroy_) && find(library, "hiprtcCompileProgram", compile_) &&
         find(library, "hiprtcGetProgramLogSize", log_size_) && find(library, "hiprtcGetProgramLog", log_) &&
         find(library, "hiprtcGetCodeSize", code_size_) && find(library, "hiprtcGetCode", code_);
}

std::string Hiprtc::version() const {
  int major = 0, minor = 0;
  version_(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string Hiprtc::error_text(int status) const {
  const char* text = get_error_string_ == nullptr ? nullptr : get_error_string_(status);
  return text == nullptr ? "error " + std::to_string(status) : text;
}

// Asked for an architecture that it does not know, the compiler library under hiprtc 5.2 ends the process; so its own
// list is asked first, where there is one.
void Hiprtc::check_architecture(const std::string& architecture) const {
  void* library = open_comgr(path_);
  int (*count_of)(size_t*) = nullptr;
  int (*name_of)(size_t, const char**) = nullptr;
  if (library == nullptr || !find(library, "amd_comgr_get_isa_count", count_of) ||
      !find(library, "amd_comgr_get_isa_name", name_of))
    return;
  size_t count = 0;
  if (count_of(&count) != 0 || count == 0) return;
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    if (name_of(i, &name) == 0 && name != nullptr && name == "amdgcn-amd-amdhsa--" + architecture) return;
  }
  throw Failure(CLOVER_COMPILE_ERROR, "hiprtc " + version() + " (" + path_ + ") does not know " + architecture +
                                          "; set DTK_ROOT to a DTK that does");
}

std::string Hiprtc::compile(const std::string& name, const std::string& source, const std::string& architecture,
                            const std::vector<std::string>& options) const {
  check_architecture(architecture);
  const std::lock_guard<std::mutex> lock(compiling());
  const std::string target = "--offload-arch=" + architecture;
  std::vector<const char*> arguments{target.c_str()};
  for (const std::string& option : options) arguments.push_back(option.c_str());

  Program program = nullptr;
  int status = create_(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (status != 0)
    throw Failure(CLOVER_COMPILE_ERROR, "hiprtcCreateProgram failed for " + name + ": " + error_text(status));
  struct Owner {
    const Hiprtc& compiler;
    Program& program;
    ~Owner() { compiler.destroy_(&program); }
  } owner{*this, program};

  status = compile_(program, static_cast<int>(arguments.size()), arguments.data());
  if (status != 0) {
    size_t size = 0;
    std::string log;
    if (log_size_(program, &size) == 0 && size > 0) {
      log.resize(size + 1);
      if (log_(program, log.data()) != 0) log.clear();
      log.resize(std::strlen(log.c_str()));
    }
    throw Failure(CLOVER_COMPILE_ERROR, "hiprtc " + version() + " (" + path_ + ") cannot compile " + name + " for " +
                                            architecture + ": " + error_text(status) + "\n" + log);
  }
  size_t size = 0;
  status = code_size_(program, &size);
  std::string code(size, '\0');
  if (status == 0) status = code_(program, code.data());
  if (status != 0 || size == 0)
    throw Failure(CLOVER_COMPILE_ERROR, "hiprtcGetCode failed for " + name + ": " + error_text(status));
  return code;
}

}  // namespace clover::device
