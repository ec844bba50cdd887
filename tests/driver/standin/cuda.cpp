// A stand-in for libcuda.so.1: it has the driver's functions, and keeps account of what is asked of it. STANDIN_DEVICES
// lists compute capabilities, STANDIN_NAME is the name of all devices, STANDIN_VERSION the driver's version,
// STANDIN_FAIL what fails from the start. Compiled with OMIT_CAPTURE it lacks a function, as an old driver does; with
// ON_HIP it is another vendor's shim.
#include "control.hpp"
#include "image.hpp"

namespace {

enum Status { kInvalidValue = 1, kNoDevice = 100, kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201 };
enum { kOutOfMemory = 2, kNoBinary = 209, kNotFound = 500, kImplicitCapture = 906 };

struct ContextObject {
  int device;
  bool primary;
};
struct StreamObject {
  ContextObject* context;
  int capturing;
};
struct ModuleObject {
  standin::CodeImage image;
  int device;
};
struct FunctionObject {
  ModuleObject* module;
  std::string name;
  std::vector<int> param_sizes;
  int dynamic_shared = 48 * 1024;
};

struct Machine {
  std::vector<std::string> capabilities = standin::devices("90");
  std::vector<ContextObject*> primary, other;
  Machine() {
    for (int i = 0; i < static_cast<int>(capabilities.size()); ++i) {
      primary.push_back(new ContextObject{i, true});
      other.push_back(new ContextObject{i, false});
    }
  }
  int count() const { return static_cast<int>(capabilities.size()); }
};

Machine& machine() {
  static auto* one = new Machine;
  return *one;
}

thread_local std::vector<ContextObject*> stack;

ContextObject* current() {
  return stack.empty() ? nullptr : stack.back();
}

bool runs(const standin::CodeImage& image, int device) {
  if (image.specific) return image.capability == device;
  return image.capability <= device && (image.ptx || image.capability / 10 == device / 10);
}

}  // namespace

EXPORT int cuInit(unsigned) {
  ENTER();
  return machine().count() == 0 ? kNoDevice : 0;
}
EXPORT int cuDriverGetVersion(int* version) {
  ENTER();
  const char* text = std::getenv("STANDIN_VERSION");
  *version = text == nullptr ? 13000 : std::atoi(text);
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  ENTER();
  *count = machine().count();
  return 0;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  ENTER();
  *device = ordinal;
  return ordinal < machine().count() ? 0 : kInvalidDevice;
}
EXPORT int cuDeviceGetName(char* name, int capacity, int) {
  ENTER();
  const char* text = std::getenv("STANDIN_NAME");
  std::snprintf(name, capacity, "%s", text == nullptr ? "Stand-in" : text);
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER();
  const int capability = std::atoi(machine().capabilities[device].c_str());
  const bool big = capability / 10 == 9 || capability / 10 == 10;
  switch (attribute) {
    case 1:
      *value = 1024;
      return 0;
    case 5:
      *value = 0x7fffffff;
      return 0;
    case 6:
    case 7:
      *value = 65535;
      return 0;
    case 8:
      *value = 48 * 1024;
      return 0;
    case 10:
      *value = 32;
      return 0;
    case 16:
      *value = 132;
      return 0;
    case 75:
      *value = capability / 10;
      return 0;
    case 76:
      *value = capability % 10;
      return 0;
    case 97:
      *value = big ? 232448 : capability == 80 ? 166912 : 101376;
      return 0;
    default:
      return kInvalidValue;
  }
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  *context = machine().primary[device];
  return 0;
}
EXPORT int cuCtxGetCurrent(void** context) {
  ENTER();
  *context = current();
  return 0;
}
EXPORT int cuCtxPushCurrent_v2(void* context) {
  ENTER();
  stack.push_back(static_cast<ContextObject*>(context));
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(void** context) {
  ENTER();
  if (stack.empty()) return kInvalidContext;
  *context = stack.back();
  stack.pop_back();
  return 0;
}
EXPORT int cuCtxGetDevice(int* device) {
  ENTER();
  if (current() == nullptr) return kInvalidContext;
  *device = current()->device;
  return 0;
}
EXPORT int cuStreamGetCtx(void* stream, void** context) {
  ENTER();
  *context = static_cast<StreamObject*>(stream)->context;
  return 0;
}
#if !defined(OMIT_CAPTURE)
EXPORT int cuStreamIsCapturing(void* stream, int* status) {
  ENTER();
  *status = reinterpret_cast<uintptr_t>(stream) <= 2 ? 0 : static_cast<StreamObject*>(stream)->capturing;
  return 0;
}
#endif
EXPORT int cuStreamSynchronize(void*) {
  ENTER();
  return 0;
}
EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER();
  static thread_local int own = 0;
  std::swap(own, *mode);
  return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* destination, unsigned long long source, size_t bytes, void*) {
  ENTER();
  std::memcpy(destination, reinterpret_cast<const void*>(source), bytes);
  return 0;
}
// Programs of C++ alone have their tensors from here.
EXPORT int cuMemAlloc_v2(void** address, size_t bytes) {
  ENTER();
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *address == nullptr ? kOutOfMemory : 0;
}
EXPORT int cuMemcpyHtoD_v2(void* destination, const void* source, size_t bytes) {
  ENTER();
  std::memcpy(destination, source, bytes);
  return 0;
}
EXPORT int cuMemcpyDtoH_v2(void* destination, const void* source, size_t bytes) {
  ENTER();
  std::memcpy(destination, source, bytes);
  return 0;
}
EXPORT int cuModuleLoadData(void** module, const void* data) {
  ENTER();
  if (current() == nullptr) return kInvalidContext;
  auto* loaded = new ModuleObject{standin::read_image(data), current()->device};
  *module = loaded;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough for other threads to come by
  if (!loaded->image.valid) return kInvalidImage;
  return runs(loaded->image, std::atoi(machine().capabilities[loaded->device].c_str())) ? 0 : kNoBinary;
}
EXPORT int cuModuleUnload(void*) {
  ENTER();
  return 0;
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER();
  auto* from = static_cast<ModuleObject*>(module);
  const auto kernel = from->image.kernels.find(name);
  if (kernel == from->image.kernels.end()) return kNotFound;
  *function = new FunctionObject{from, name, kernel->second};
  return 0;
}
EXPORT int cuFuncGetAttribute(int* value, int attribute, void*) {
  ENTER();
  *value = attribute == 0 ? 1024 : 0;
  return 0;
}
EXPORT int cuFuncSetAttribute(void* function, int attribute, int value) {
  ENTER();
  if (attribute != 8) return kInvalidValue;
  static_cast<FunctionObject*>(function)->dynamic_shared = value;
  return 0;
}
EXPORT int cuFuncSetCacheConfig(void*, int) {
  ENTER();
  return 0;
}
EXPORT int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* size) {
  ENTER();
  const auto& sizes = static_cast<FunctionObject*>(function)->param_sizes;
  if (index >= sizes.size()) return kInvalidValue;
  *offset = 0;  // nobody asks for it
  *size = static_cast<size_t>(sizes[index]);
  return 0;
}
EXPORT int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** arguments, void**) {
  ENTER();
#if defined(IDLE)
  return 0;
#endif
  const auto* kernel = static_cast<FunctionObject*>(function);
  if (current() == nullptr || current()->device != kernel->module->device) return kInvalidContext;
  if (shared > static_cast<unsigned>(kernel->dynamic_shared)) return kInvalidValue;
  std::string params;
  for (size_t i = 0; i < kernel->param_sizes.size(); ++i)
    params.append(static_cast<const char*>(arguments[i]), kernel->param_sizes[i]);
  standin::log_launch(kernel->name.c_str(), kernel->module->device, stream, {grid_x, grid_y, grid_z},
                      {block_x, block_y, block_z}, shared, params.data(), params.size());
  return 0;
}
EXPORT int cuGetErrorName(int status, const char** name) {
  static thread_local char text[40];
  std::snprintf(text, sizeof(text), "STANDIN_ERROR_%d", status);
  *name = text;
  return 0;
}
EXPORT int cuGetErrorString(int status, const char** text) {
  *text = status == kNoDevice ? "no device" : "a failure that the test asked for";
  return 0;
}
#if defined(ON_HIP)
EXPORT int hipInit(unsigned) {
  return 0;
}
#endif

EXPORT void* standin_stream(int device, int primary, int capturing) {
  return new StreamObject{primary ? machine().primary[device] : machine().other[device], capturing};
}
EXPORT void standin_capture(void* stream, int capturing) {
  static_cast<StreamObject*>(stream)->capturing = capturing;
}
// A context that is not Clover's: what a program may have made current itself.
EXPORT void* standin_context(int device, int primary) {
  return primary ? machine().primary[device] : machine().other[device];
}
EXPORT void standin_push(void* context) {
  stack.push_back(static_cast<ContextObject*>(context));
}
EXPORT void* standin_current() {
  return current();
}
EXPORT int standin_depth() {
  return static_cast<int>(stack.size());
}
