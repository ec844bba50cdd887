#include "driver.hpp"

namespace clover::device {
namespace {

struct Advice {
  driver::Status first, last;
  const char* text;
};

// CUDA and HIP number these alike.
constexpr Advice kAdvice[] = {
    {2, 2, "free device memory: a code object needs some too"},
    {3, 4, "the driver was initialised before a fork or is shutting down; start workers by spawn instead of fork"},
    {100, 101, "check CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and the driver's installation"},
    {200, 200, "the code object is damaged or foreign; reinstall the plugin"},
    {209, 209, "the plugin holds no code for this device; `clover-ops doctor` lists what it holds"},
    {218, 222, "the driver cannot compile the plugin's PTX; install a newer driver"},
    {300, 302, "the code object is damaged or foreign; reinstall the plugin"},
    {500, 500, "the code objects and this library are not of one build; reinstall the plugin"},
    {700, 700,
     "an earlier kernel on this device failed, and the process must be restarted; CUDA_LAUNCH_BLOCKING=1 shows "
     "which"},
    {701, 701, "the launch asks for more registers, threads or shared memory than the device has"},
    {710, 719,
     "an earlier kernel on this device failed, and the process must be restarted; CUDA_LAUNCH_BLOCKING=1 shows "
     "which"},
    {802, 804, "the system's driver is not ready or not of one version; restart its services or the machine"},
    {900, 907, "the stream is being captured; call clover::warmup (clover_ops.warmup in Python) before capture"},
};

}  // namespace

void fail(const char* call, driver::Status status, const std::string& what) {
  std::string message = Driver::CallName(call) + std::string(" failed") + (what.empty() ? "" : " " + what) + ": " +
                        Driver::ErrorText(status);
  for (const Advice& advice : kAdvice)
    if (status >= advice.first && status <= advice.last) message += "; " + std::string(advice.text);
  throw Failure(CLOVER_DRIVER_ERROR, message);
}

}  // namespace clover::device
