// What the probes of GPU backends have in common: asking a driver how many devices it shows, without the plugin's
// library.
#pragma once

#include <clover/driver.h>
#include <clover/plugin.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace clover::device {

// Why an opened driver shows no device; `variables` are those that hide devices from it.
inline std::string no_device_reason(std::initializer_list<const char*> variables) {
  for (const char* name : variables)
    if (const char* visible = std::getenv(name); visible != nullptr)
      return "no device is visible: " + std::string(name) + " is `" + visible + "`";
  return "the driver shows no device";
}

// The number of devices, or 0 with a reason. The driver has been opened.
template <class Driver>
int count_devices(std::initializer_list<const char*> variables, std::string* reason) {
  int count = 0;
  const char* call = "Init";
  driver::Status status = Driver::table().Init(0);
  if (status == driver::kSuccess) {
    call = "DeviceGetCount";
    status = Driver::table().DeviceGetCount(&count);
  }
  // HIP's answer to hipInit on a machine without a card.
  const bool refused = !Driver::kCuda && std::string(call) == "Init" && status == driver::kInvalidDevice;
  if (status == driver::kNoDevice || refused || (status == driver::kSuccess && count == 0)) {
    *reason = no_device_reason(variables);
    return 0;
  }
  if (status == driver::kSuccess) return count;
  *reason = std::string(Driver::CallName(call)) + " failed: " + Driver::ErrorText(status);
  return 0;
}

// The body of clover_plugin_probe.
template <class Probe>
int32_t answer_probe(char* message, uint64_t capacity, Probe&& probe) {
  std::string reason;
  const int devices = probe(&reason);
  if (message != nullptr && capacity > 0) std::snprintf(message, capacity, "%s", reason.c_str());
  return devices;
}

}  // namespace clover::device
