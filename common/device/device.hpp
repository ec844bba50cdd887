// The devices that the driver shows, with what is asked of each one once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/kernels/native/launch.h"
#include "driver.hpp"

namespace clover::device {

class Kernels;

struct Limits {
  int threads_per_block = 0;
  int grid[3] = {0, 0, 0};
};

class Device {
 public:
  explicit Device(int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const { return ordinal_; }
  const std::string& label() const { return label_; }                // "NVIDIA H200"
  const std::string& architecture() const { return architecture_; }  // "90", "gfx906"
  const std::string& features() const { return features_; }          // ":sramecc+:xnack-"
  const native::Machine& machine() const { return machine_; }
  const Limits& limits() const { return limits_; }
  Kernels& kernels() { return *kernels_; }

  // Makes the device's primary context current on this thread and refuses a stream of another; leave() restores what
  // was.
  void* enter(driver::Stream stream);
  static void leave(void* token);

 private:
  int attribute(driver::Attribute attribute, const char* name) const;
  void check_stream(driver::Stream stream) const;
  driver::Context primary_context();

  const int ordinal_;
  int handle_ = 0;
  std::string label_, architecture_, features_;
  native::Machine machine_;
  Limits limits_;
  std::mutex retaining_;
  std::atomic<driver::Context> context_{nullptr};
  std::unique_ptr<Kernels> kernels_;
};

// All devices, found at the first call; throws why there are none.
const std::vector<std::unique_ptr<Device>>& devices();

Device& device(int ordinal);

}  // namespace clover::device
