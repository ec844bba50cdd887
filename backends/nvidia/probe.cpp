// Is there an NVIDIA device that this plugin's code runs on? Answered by the driver alone, without the plugin's
// library. CLOVER_DRIVER_VERSION is the oldest driver that loads the plugin's code objects.
#include "common/device/probe.hpp"

#include <climits>

namespace {

using Driver = clover::driver::Driver<CLOVER_CUDA>;
using clover::driver::Attribute;

constexpr int kOldestCapability = 80;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string real_path(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) == nullptr ? path : resolved;
}

// DTK and others ship a library of CUDA's name that stands on HIP.
bool stands_on_hip() {
  void* library = dlopen(Driver::path().c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr && dlsym(library, "hipInit") != nullptr) return true;
  const char* dtk = std::getenv("DTK_ROOT");
  return dtk != nullptr && *dtk != '\0' && real_path(Driver::path()).rfind(real_path(dtk) + "/", 0) == 0;
}

// The number of devices, or 0 with a reason when none is new enough.
int suitable_devices(int count, std::string* reason) {
  std::string seen;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0, major = 0, minor = 0;
    if (Driver::table().DeviceGet(&device, ordinal) != clover::driver::kSuccess) continue;
    Driver::DeviceGetAttribute(&major, Attribute::kComputeCapabilityMajor, device);
    Driver::DeviceGetAttribute(&minor, Attribute::kComputeCapabilityMinor, device);
    if (10 * major + minor >= kOldestCapability) return count;
    seen += (seen.empty() ? "" : ", ") + std::to_string(major) + "." + std::to_string(minor);
  }
  *reason = "needs a device of compute capability 8.0 or higher; here: " + seen;
  return 0;
}

int probe(std::string* reason) {
  *reason = Driver::Open();
  if (!reason->empty()) return 0;
  if (stands_on_hip()) {
    *reason = Driver::path() + " is not NVIDIA's driver, it stands on HIP; install clover-ops-hygon for DCUs";
    return 0;
  }
  int version = 0;
  const clover::driver::Status status = Driver::table().DriverGetVersion(&version);
  if (status != clover::driver::kSuccess) {
    *reason = std::string(Driver::CallName("DriverGetVersion")) + " failed: " + Driver::ErrorText(status);
    return 0;
  }
  if (version < CLOVER_DRIVER_VERSION) {
    *reason = "the driver is too old: it is for CUDA " + version_text(version) + ", this plugin needs " +
              version_text(CLOVER_DRIVER_VERSION) + " or newer";
    return 0;
  }
  const int count = clover::device::count_devices<Driver>({"CUDA_VISIBLE_DEVICES"}, reason);
  return count == 0 ? 0 : suitable_devices(count, reason);
}

}  // namespace

extern "C" int32_t clover_plugin_probe(char* message, uint64_t capacity) {
  return clover::device::answer_probe(message, capacity, probe);
}
