// A device driver as Clover uses it: one interface for CUDA and HIP, with the operations of InfiniRT's driver interface
// (ModuleLoadData, FuncSetAttribute, LaunchKernel, ...) plus devices, contexts, streams and attributes.
//
// No CUDA or HIP header or library is needed to build this, and none to start: `Open` fills a table of functions with
// dlopen. What is opened is never closed, since vendor runtimes do not survive it.
#pragma once

#include <clover/abi.h>
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace clover::driver {

using Status = int;      // CUresult, hipError_t
using Module = void*;    // CUmodule, hipModule_t
using Function = void*;  // CUfunction, hipFunction_t
using Stream = void*;    // CUstream, hipStream_t
using Context = void*;   // CUcontext

// What both drivers number alike.
inline constexpr Status kSuccess = 0;
inline constexpr Status kNotInitialized = 3;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kInvalidDevice = 101;
inline constexpr Status kNotSupported = 801;
inline constexpr int kFuncAttributeMaxThreadsPerBlock = 0;
inline constexpr int kFuncAttributeSharedSizeBytes = 1;
inline constexpr int kFuncAttributeMaxDynamicSharedSizeBytes = 8;
inline constexpr int kFuncCachePreferShared = 1;
inline constexpr int kCaptureModeRelaxed = 2;

// A driver's functions; null is one that the driver does not have. Names are CUDA's without `cu`, or HIP's without
// `hip` where CUDA has none.
struct Table {
  uint64_t struct_size = sizeof(Table);
  Status (*Init)(unsigned flags);
  Status (*DriverGetVersion)(int* version);
  Status (*DeviceGetCount)(int* count);
  Status (*DeviceGet)(int* device, int ordinal);
  Status (*DeviceGetName)(char* name, int capacity, int device);
  Status (*DeviceGetAttribute)(int* value, int attribute, int device);
  Status (*ModuleLoadData)(Module* module, const void* image);
  Status (*ModuleUnload)(Module module);
  Status (*ModuleGetFunction)(Function* function, Module module, const char* name);
  Status (*FuncGetAttribute)(int* value, int attribute, Function function);
  Status (*FuncSetAttribute)(Function function, int attribute, int value);
  Status (*FuncSetCacheConfig)(Function function, int config);
  Status (*FuncGetParamInfo)(Function function, size_t index, size_t* offset, size_t* size);
  Status (*LaunchKernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** arguments,
                         void** extra);
  Status (*StreamIsCapturing)(Stream stream, int* status);
  Status (*StreamSynchronize)(Stream stream);
  Status (*ThreadExchangeStreamCaptureMode)(int* mode);
  Status (*MemcpyDtoHAsync)(void* destination, uintptr_t source, size_t bytes, Stream stream);
  Status (*GetErrorName)(Status status, const char** name);
  Status (*GetErrorString)(Status status, const char** text);
  // CUDA's alone.
  Status (*DevicePrimaryCtxRetain)(Context* context, int device);
  Status (*CtxGetCurrent)(Context* context);
  Status (*CtxPushCurrent)(Context context);
  Status (*CtxPopCurrent)(Context* context);
  Status (*CtxGetDevice)(int* device);
  Status (*StreamGetCtx)(Stream stream, Context* context);
  // HIP's alone.
  Status (*GetDevice)(int* device);
  Status (*SetDevice)(int device);
  Status (*StreamGetDevice)(Stream stream, int* device);
  Status (*GetDeviceProperties)(void* properties, int device);
};

// Where each function is found. `required` functions are in every driver that Clover runs on.
struct Symbol {
  const char* name;
  size_t offset;
  const char* cuda;
  const char* hip;
  bool required;
};

#define CLOVER_DRIVER_SYMBOL(name, cuda, hip, required) \
  {#name, offsetof(::clover::driver::Table, name), cuda, hip, required}
inline constexpr Symbol kSymbols[] = {
    CLOVER_DRIVER_SYMBOL(Init, "cuInit", "hipInit", true),
    CLOVER_DRIVER_SYMBOL(DriverGetVersion, "cuDriverGetVersion", "hipDriverGetVersion", true),
    CLOVER_DRIVER_SYMBOL(DeviceGetCount, "cuDeviceGetCount", "hipGetDeviceCount", true),
    CLOVER_DRIVER_SYMBOL(DeviceGet, "cuDeviceGet", "hipDeviceGet", true),
    CLOVER_DRIVER_SYMBOL(DeviceGetName, "cuDeviceGetName", "hipDeviceGetName", true),
    CLOVER_DRIVER_SYMBOL(DeviceGetAttribute, "cuDeviceGetAttribute", "hipDeviceGetAttribute", true),
    CLOVER_DRIVER_SYMBOL(ModuleLoadData, "cuModuleLoadData", "hipModuleLoadData", true),
    CLOVER_DRIVER_SYMBOL(ModuleUnload, "cuModuleUnload", "hipModuleUnload", true),
    CLOVER_DRIVER_SYMBOL(ModuleGetFunction, "cuModuleGetFunction", "hipModuleGetFunction", true),
    CLOVER_DRIVER_SYMBOL(FuncGetAttribute, "cuFuncGetAttribute", "hipFuncGetAttribute", true),
    // HIP's take the address of a host function, which a loaded code object does not have.
    CLOVER_DRIVER_SYMBOL(FuncSetAttribute, "cuFuncSetAttribute", nullptr, true),
    CLOVER_DRIVER_SYMBOL(FuncSetCacheConfig, "cuFuncSetCacheConfig", nullptr, true),
    CLOVER_DRIVER_SYMBOL(FuncGetParamInfo, "cuFuncGetParamInfo", nullptr, false),
    CLOVER_DRIVER_SYMBOL(LaunchKernel, "cuLaunchKernel", "hipModuleLaunchKernel", true),
    CLOVER_DRIVER_SYMBOL(StreamIsCapturing, "cuStreamIsCapturing", "hipStreamIsCapturing", true),
    CLOVER_DRIVER_SYMBOL(StreamSynchronize, "cuStreamSynchronize", "hipStreamSynchronize", true),
    CLOVER_DRIVER_SYMBOL(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode",
                         "hipThreadExchangeStreamCaptureMode", false),
    CLOVER_DRIVER_SYMBOL(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", true),
    CLOVER_DRIVER_SYMBOL(GetErrorName, "cuGetErrorName", "hipDrvGetErrorName", false),
    CLOVER_DRIVER_SYMBOL(GetErrorString, "cuGetErrorString", "hipDrvGetErrorString", false),
    CLOVER_DRIVER_SYMBOL(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", nullptr, true),
    CLOVER_DRIVER_SYMBOL(CtxGetCurrent, "cuCtxGetCurrent", nullptr, true),
    CLOVER_DRIVER_SYMBOL(CtxPushCurrent, "cuCtxPushCurrent_v2", nullptr, true),
    CLOVER_DRIVER_SYMBOL(CtxPopCurrent, "cuCtxPopCurrent_v2", nullptr, true),
    CLOVER_DRIVER_SYMBOL(CtxGetDevice, "cuCtxGetDevice", nullptr, true),
    CLOVER_DRIVER_SYMBOL(StreamGetCtx, "cuStreamGetCtx", nullptr, true),
    CLOVER_DRIVER_SYMBOL(GetDevice, nullptr, "hipGetDevice", true),
    CLOVER_DRIVER_SYMBOL(SetDevice, nullptr, "hipSetDevice", true),
    CLOVER_DRIVER_SYMBOL(StreamGetDevice, nullptr, "hipStreamGetDevice", false),
    CLOVER_DRIVER_SYMBOL(GetDeviceProperties, nullptr, "hipGetDeviceProperties", true),
};
#undef CLOVER_DRIVER_SYMBOL

// Attributes of a device. The two drivers number them differently, and HIP renumbered them in 4.3.
enum class Attribute {
  kMaxThreadsPerBlock,
  kMaxGridDimX,
  kMaxGridDimY,
  kMaxGridDimZ,
  kMaxSharedMemoryPerBlock,
  kWarpSize,
  kMultiprocessorCount,
  kComputeCapabilityMajor,
  kComputeCapabilityMinor,
  kMaxSharedMemoryPerBlockOptin,
};

struct AttributeNumbers {
  int cuda, hip, old_hip;  // -1: there is none
};
inline constexpr AttributeNumbers kAttributeNumbers[] = {
    {1, 56, 0},  {5, 29, 4},   {6, 30, 5},   {7, 31, 6},   {8, 74, 7},
    {10, 87, 9}, {16, 63, 14}, {75, 23, -1}, {76, 61, -1}, {97, -1, -1},
};

namespace detail {

inline void*& slot(Table* table, const Symbol& symbol) {
  return *reinterpret_cast<void**>(reinterpret_cast<char*>(table) + symbol.offset);
}

// The path of a library in this process whose file name begins so; empty when there is none.
inline std::string loaded_library(const char* prefix) {
  struct Search {
    const char* prefix;
    std::string path;
  } search{prefix, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        const char* slash = std::strrchr(info->dlpi_name, '/');
        const char* file = slash == nullptr ? info->dlpi_name : slash + 1;
        if (std::strncmp(file, wanted->prefix, std::strlen(wanted->prefix)) != 0) return 0;
        wanted->path = info->dlpi_name;
        return 1;
      },
      &search);
  return search.path;
}

// Where a driver may be, best first: the copy already in the process, then DTK's, then the loader's own search.
inline std::vector<std::string> candidates(int32_t device_type) {
  if (device_type == CLOVER_CUDA) return {"libcuda.so.1"};
  std::vector<std::string> paths;
  for (const char* prefix : {"libgalaxyhip.so", "libamdhip64.so"})
    if (std::string path = loaded_library(prefix); !path.empty()) paths.push_back(path);
  static constexpr const char* kNames[] = {"libgalaxyhip.so.5", "libgalaxyhip.so",  "libamdhip64.so.7",
                                           "libamdhip64.so.6",  "libamdhip64.so.5", "libamdhip64.so"};
  if (const char* dtk = std::getenv("DTK_ROOT"); dtk != nullptr && *dtk != '\0')
    for (const char* folder : {"/hip/lib/", "/lib/", "/lib64/"})
      for (const char* name : kNames) paths.push_back(std::string(dtk) + folder + name);
  paths.insert(paths.end(), std::begin(kNames), std::end(kNames));
  return paths;
}

struct State {
  Table table{};
  std::string error = "the driver was not opened";
  std::string path;
  bool old_numbering = false;  // HIP before 4.3
  const char* (*hip_error_name)(Status) = nullptr;
  const char* (*hip_error_string)(Status) = nullptr;
};

inline void* open_library(int32_t device_type, std::string* why) {
  for (const std::string& path : candidates(device_type)) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) return library;
    const char* text = dlerror();
    // A library that is there and does not load says more than those that are not there.
    const bool absent = text == nullptr || std::strstr(text, "No such file") != nullptr;
    if (why->empty() || !absent) *why = text == nullptr ? path + " cannot be opened" : text;
  }
  return nullptr;
}

inline State open_driver(int32_t device_type) {
  State state;
  const bool cuda = device_type == CLOVER_CUDA;
  std::string why;
  void* library = open_library(device_type, &why);
  if (library == nullptr) {
    state.error =
        (cuda ? "there is no NVIDIA driver: " : "there is no HIP driver (set DTK_ROOT if DTK is installed): ") + why;
    return state;
  }
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) state.path = map->l_name;
  for (const Symbol& symbol : kSymbols) {
    const char* name = cuda ? symbol.cuda : symbol.hip;
    if (name == nullptr) continue;
    void*& function = slot(&state.table, symbol);
    function = dlsym(library, name);
    if (function != nullptr || !symbol.required) continue;
    state.error = "the driver is too old: " + state.path + " lacks " + name + "; install a newer one";
    return state;
  }
  if (!cuda) {
    state.hip_error_name = reinterpret_cast<decltype(state.hip_error_name)>(dlsym(library, "hipGetErrorName"));
    state.hip_error_string = reinterpret_cast<decltype(state.hip_error_string)>(dlsym(library, "hipGetErrorString"));
  }
  state.error.clear();
  return state;
}

}  // namespace detail

// The driver of a device type. All functions are static, as in InfiniRT; Open must have returned an empty text first.
template <int32_t kDeviceType>
class Driver {
  static_assert(kDeviceType == CLOVER_CUDA || kDeviceType == CLOVER_ROCM);

 public:
  using Module = driver::Module;
  using Function = driver::Function;
  using Stream = driver::Stream;
  static constexpr Status kSuccess = driver::kSuccess;
  static constexpr int kFuncAttributeSharedSizeBytes = driver::kFuncAttributeSharedSizeBytes;
  static constexpr int kFuncAttributeMaxDynamicSharedSizeBytes = driver::kFuncAttributeMaxDynamicSharedSizeBytes;
  static constexpr int kFuncCachePreferShared = driver::kFuncCachePreferShared;
  static constexpr bool kCuda = kDeviceType == CLOVER_CUDA;

  // Finds the driver, once for the process; returns why there is none, or an empty text.
  static const std::string& Open() { return state().error; }
  static const Table& table() { return state().table; }
  static const std::string& path() { return state().path; }

  // Takes another implementation's functions, where it has them, in place of the driver's own. Not for use once calls
  // may be under way.
  static void Replace(const Table& other) {
    for (const Symbol& symbol : kSymbols) {
      if (symbol.offset + sizeof(void*) > other.struct_size) continue;
      void* function = detail::slot(const_cast<Table*>(&other), symbol);
      if (function != nullptr) detail::slot(&state().table, symbol) = function;
    }
  }

  static Status ModuleLoadData(Module* module, const void* image) { return table().ModuleLoadData(module, image); }
  static Status ModuleUnload(Module module) { return table().ModuleUnload(module); }
  static Status ModuleGetFunction(Function* function, Module module, const char* name) {
    return table().ModuleGetFunction(function, module, name);
  }
  static Status FuncGetAttribute(int* value, int attribute, Function function) {
    return table().FuncGetAttribute(value, attribute, function);
  }
  // Where a driver needs no opting in (HIP), this succeeds and does nothing.
  static Status FuncSetAttribute(Function function, int attribute, int value) {
    return table().FuncSetAttribute == nullptr ? kSuccess : table().FuncSetAttribute(function, attribute, value);
  }
  static Status FuncSetCacheConfig(Function function, int config) {
    return table().FuncSetCacheConfig == nullptr ? kSuccess : table().FuncSetCacheConfig(function, config);
  }
  static Status LaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** arguments,
                             void** extra) {
    return table().LaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                                arguments, extra);
  }

  static Status DeviceGetAttribute(int* value, Attribute attribute, int device) {
    const AttributeNumbers& numbers = kAttributeNumbers[static_cast<int>(attribute)];
    const int number = kCuda ? numbers.cuda : state().old_numbering ? numbers.old_hip : numbers.hip;
    return number < 0 ? kNotSupported : table().DeviceGetAttribute(value, number, device);
  }

  // HIP's two numberings of attributes are told apart by what the driver answers: a warp has 32 or 64 lanes and a block
  // may have 256 to 4096 threads in one of them only. False when neither fits.
  static bool DetectNumbering(int device) {
    if (kCuda) return true;
    for (const bool old : {false, true}) {
      state().old_numbering = old;
      int warp = 0, threads = 0;
      if (DeviceGetAttribute(&warp, Attribute::kWarpSize, device) != kSuccess) continue;
      if (DeviceGetAttribute(&threads, Attribute::kMaxThreadsPerBlock, device) != kSuccess) continue;
      if ((warp == 32 || warp == 64) && threads >= 256 && threads <= 4096) return true;
    }
    return false;
  }

  // `gfx906:sramecc+:xnack-`: found by its spelling among the properties, whose layout differs from driver to driver.
  static Status DeviceGetArchitecture(std::string* name, int device) {
    std::vector<char> properties(16384, '\0');
    const Status status = table().GetDeviceProperties(properties.data(), device);
    if (status != kSuccess) return status;
    for (size_t i = 0; i + 4 < properties.size(); ++i) {
      if (std::memcmp(&properties[i], "gfx", 3) != 0 || properties[i + 3] < '0' || properties[i + 3] > '9') continue;
      *name = std::string(&properties[i], strnlen(&properties[i], properties.size() - i));
      return kSuccess;
    }
    return kNotSupported;
  }

  // A driver call's full name: LaunchKernel is cuLaunchKernel or hipModuleLaunchKernel.
  static const char* CallName(const char* name) {
    for (const Symbol& symbol : kSymbols) {
      const char* full = kCuda ? symbol.cuda : symbol.hip;
      if (full != nullptr && std::strcmp(symbol.name, name) == 0) return full;
    }
    return name;
  }

  // "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
  static std::string ErrorText(Status status) {
    const char *name = nullptr, *text = nullptr;
    if (table().GetErrorName != nullptr) table().GetErrorName(status, &name);
    if (table().GetErrorString != nullptr) table().GetErrorString(status, &text);
    if (name == nullptr && state().hip_error_name != nullptr) name = state().hip_error_name(status);
    if (text == nullptr && state().hip_error_string != nullptr) text = state().hip_error_string(status);
    return (name == nullptr ? "error " + std::to_string(status) : std::string(name)) +
           (text == nullptr ? "" : " (" + std::string(text) + ")");
  }

 private:
  static detail::State& state() {
    static detail::State* opened = new detail::State(detail::open_driver(kDeviceType));  // never destroyed
    return *opened;
  }
};

}  // namespace clover::driver

// A plugin of a GPU backend exports this: it takes another implementation's functions (see clover/interop/infinirt.h),
// and refuses once a kernel is loaded.
extern "C" CLOVER_EXPORT int32_t clover_plugin_set_driver(const clover::driver::Table* table, char* message,
                                                          uint64_t capacity);
