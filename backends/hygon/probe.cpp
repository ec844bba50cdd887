// Is there a DCU that this plugin's code runs on? Answered by the HIP driver alone, without the plugin's library.
#include "common/device/probe.hpp"

namespace {

using Driver = clover::driver::Driver<CLOVER_ROCM>;
using clover::driver::Attribute;

constexpr int kLanes = 64;  // of every DCU; code for other architectures is compiled where it runs

// "gfx906 (64 lanes)"; empty when the driver does not say.
std::string device_text(int device, int lanes) {
  std::string architecture;
  if (Driver::DeviceGetArchitecture(&architecture, device) != clover::driver::kSuccess) architecture = "unknown";
  return architecture + " (" + std::to_string(lanes) + " lanes)";
}

// The number of devices, or 0 with a reason when the plugin runs on none of them.
int suitable_devices(int count, std::string* reason) {
  std::string seen;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0, lanes = 0;
    if (Driver::table().DeviceGet(&device, ordinal) != clover::driver::kSuccess) continue;
    if (!Driver::DetectNumbering(device)) {
      *reason = "the driver at " + Driver::path() +
                " numbers device attributes in a way that this plugin does not know; install a supported one";
      return 0;
    }
    Driver::DeviceGetAttribute(&lanes, Attribute::kWarpSize, device);
    if (lanes == kLanes) return count;
    seen += (seen.empty() ? "" : ", ") + device_text(device, lanes);
  }
  *reason = "needs a device whose warps have 64 lanes; here: " + seen;
  return 0;
}

int probe(std::string* reason) {
  *reason = Driver::Open();
  if (!reason->empty()) return 0;
  const int count = clover::device::count_devices<Driver>(
      {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}, reason);
  return count == 0 ? 0 : suitable_devices(count, reason);
}

}  // namespace

extern "C" int32_t clover_plugin_probe(char* message, uint64_t capacity) {
  return clover::device::answer_probe(message, capacity, probe);
}
