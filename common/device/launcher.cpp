#include "launcher.hpp"

#include <string>

#include "kernels.hpp"

namespace clover::device {
namespace {

std::string size_text(const uint32_t (&size)[3]) {
  return std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " + std::to_string(size[2]);
}

// What a planner must not ask for; the driver would say less, and later.
void check_launch(const Device& device, const native::Launch& launch, const Kernel& kernel) {
  const auto refuse = [&](clover_status status, const std::string& what) {
    throw Failure(status, "kernel " + std::string(launch.kernel) + ": " + what);
  };
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  const int most = kernel.threads_per_block > 0 ? kernel.threads_per_block : device.limits().threads_per_block;
  if (threads == 0 || threads > static_cast<uint64_t>(most))
    refuse(CLOVER_INTERNAL, "a block of " + size_text(launch.block) + " threads; this kernel takes up to " +
                                std::to_string(most) + " on " + device_name(device.ordinal()));
  for (int axis = 0; axis < 3; ++axis)
    if (launch.grid[axis] == 0 || launch.grid[axis] > static_cast<uint32_t>(device.limits().grid[axis]))
      refuse(CLOVER_INTERNAL, "a grid of " + size_text(launch.grid) + " blocks; axis " + std::to_string(axis) +
                                  " takes 1 to " + std::to_string(device.limits().grid[axis]));
  if (launch.shared_bytes > kernel.shared_bytes)
    refuse(CLOVER_INTERNAL, std::to_string(launch.shared_bytes) + " bytes of shared memory; " +
                                device_name(device.ordinal()) + " has " + std::to_string(kernel.shared_bytes) +
                                " for it");
  if (kernel.param_bytes != 0 && launch.param_bytes != kernel.param_bytes)
    refuse(CLOVER_COMPILE_ERROR, "takes an argument of " + std::to_string(kernel.param_bytes) + " bytes but is given " +
                                     std::to_string(launch.param_bytes) +
                                     "; the plugin's device code and its library are not of one build: reinstall it");
}

}  // namespace

void launch(Device& device, driver::Stream stream, const native::Launch* launches, int count) {
  const Kernel* kernels[kMaxLaunches];
  for (int i = 0; i < count; ++i) {
    kernels[i] = &device.kernels().find(launches[i].kernel, stream);
    check_launch(device, launches[i], *kernels[i]);
  }
  for (int i = 0; i < count; ++i) {
    const native::Launch& one = launches[i];
    void* arguments[] = {const_cast<unsigned char*>(one.params)};
    const driver::Status status =
        Driver::LaunchKernel(kernels[i]->function, one.grid[0], one.grid[1], one.grid[2], one.block[0], one.block[1],
                             one.block[2], one.shared_bytes, stream, arguments, nullptr);
    if (status != driver::kSuccess) fail("LaunchKernel", status, "for kernel " + std::string(one.kernel));
  }
}

}  // namespace clover::device
