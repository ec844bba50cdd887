// clover/driver.h against a HIP SDK's own headers: what it numbers itself, and the functions' names and arguments.
// Compiles, or says what differs; nothing runs.
#include <clover/driver.h>
#include <hip/hip_runtime_api.h>

#include <type_traits>

using clover::driver::Attribute;
using clover::driver::Table;

constexpr int number(Attribute attribute) {
  return clover::driver::kAttributeNumbers[static_cast<int>(attribute)].hip;
}

static_assert(number(Attribute::kMaxThreadsPerBlock) == hipDeviceAttributeMaxThreadsPerBlock);
static_assert(number(Attribute::kMaxGridDimX) == hipDeviceAttributeMaxGridDimX);
static_assert(number(Attribute::kMaxGridDimY) == hipDeviceAttributeMaxGridDimY);
static_assert(number(Attribute::kMaxGridDimZ) == hipDeviceAttributeMaxGridDimZ);
static_assert(number(Attribute::kMaxSharedMemoryPerBlock) == hipDeviceAttributeMaxSharedMemoryPerBlock);
static_assert(number(Attribute::kWarpSize) == hipDeviceAttributeWarpSize);
static_assert(number(Attribute::kMultiprocessorCount) == hipDeviceAttributeMultiprocessorCount);
static_assert(clover::driver::kSuccess == hipSuccess && clover::driver::kNoDevice == hipErrorNoDevice);
static_assert(clover::driver::kInvalidDevice == hipErrorInvalidDevice);
static_assert(clover::driver::kNotInitialized == hipErrorNotInitialized);
static_assert(clover::driver::kNotSupported == hipErrorNotSupported);
static_assert(clover::driver::kFuncAttributeMaxThreadsPerBlock == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(clover::driver::kFuncAttributeSharedSizeBytes == HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(clover::driver::kCaptureModeRelaxed == hipStreamCaptureModeRelaxed);

// As many arguments, each as large: handles and enumerations differ in type only.
template <class Ours, class Theirs>
struct Alike : std::false_type {};
template <class... Ours, class... Theirs>
struct Alike<int (*)(Ours...), hipError_t (*)(Theirs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs))
      return false;
    else
      return ((sizeof(Ours) == sizeof(Theirs)) && ...);
  }();
};
#define ALIKE(name, function) \
  static_assert(Alike<decltype(Table::name), std::add_pointer_t<decltype(function)>>::value, #function " differs")
ALIKE(Init, hipInit);
ALIKE(DriverGetVersion, hipDriverGetVersion);
ALIKE(DeviceGetCount, hipGetDeviceCount);
ALIKE(DeviceGet, hipDeviceGet);
ALIKE(DeviceGetName, hipDeviceGetName);
ALIKE(DeviceGetAttribute, hipDeviceGetAttribute);
ALIKE(ModuleLoadData, hipModuleLoadData);
ALIKE(ModuleUnload, hipModuleUnload);
ALIKE(ModuleGetFunction, hipModuleGetFunction);
ALIKE(FuncGetAttribute, hipFuncGetAttribute);
ALIKE(LaunchKernel, hipModuleLaunchKernel);
ALIKE(StreamIsCapturing, hipStreamIsCapturing);
ALIKE(StreamSynchronize, hipStreamSynchronize);
ALIKE(ThreadExchangeStreamCaptureMode, hipThreadExchangeStreamCaptureMode);
ALIKE(MemcpyDtoHAsync, hipMemcpyDtoHAsync);
ALIKE(GetDevice, hipGetDevice);
ALIKE(SetDevice, hipSetDevice);

int main() {
  // The properties must fit where DeviceGetArchitecture has them written.
  static_assert(sizeof(hipDeviceProp_t) <= 16384);
}
