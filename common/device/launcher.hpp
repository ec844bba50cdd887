// Puts the launches of a plan on a stream.
#pragma once

#include "device.hpp"

namespace clover::device {

// All or nothing as far as can be told beforehand: every kernel is loaded and every launch checked before the first
// one.
void launch(Device& device, driver::Stream stream, const native::Launch* launches, int count);

constexpr int kMaxLaunches = 16;

}  // namespace clover::device
