// Loading code objects while a stream, here or on another thread, is being captured.
#pragma once

#include <string>

#include "device.hpp"

namespace clover::device {

// While a thread loads a code object, the capture of a stream by another one must not be in its way.
class RelaxedCapture {
 public:
  RelaxedCapture() { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() {
    if (Driver::table().ThreadExchangeStreamCaptureMode != nullptr)
      Driver::table().ThreadExchangeStreamCaptureMode(&mode_);
  }
  int mode_ = driver::kCaptureModeRelaxed;
};

inline bool is_capturing(driver::Stream stream, const std::string& kernel) {
  int capturing = 0;
  check("StreamIsCapturing", Driver::table().StreamIsCapturing(stream, &capturing), "before loading kernel " + kernel);
  return capturing != 0;
}

// A kernel that is not loaded yet cannot be loaded into a capture. `remedy` is what to do before it.
inline void refuse_in_capture(const Device& device, driver::Stream stream, const std::string& kernel,
                              const std::string& remedy) {
  if (!is_capturing(stream, kernel)) return;
  throw Failure(CLOVER_COMPILE_ERROR, "kernel " + kernel + " is not loaded on " + device_name(device.ordinal()) +
                                          " and the stream is being captured; " + remedy + " before capture");
}

}  // namespace clover::device
