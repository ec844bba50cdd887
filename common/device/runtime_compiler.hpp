// Compiles a unit's HIP source on this machine, for an architecture that the plugin holds no code for: by hiprtc, else
// by hipcc of DTK_ROOT or PATH. Done once for the machine: the code is kept in the user's cache.
#pragma once

#include <string>

#include "code_objects.hpp"
#include "driver.hpp"

namespace clover::device {

class RuntimeCompiler {
 public:
  // Whether the unit's source came with the plugin. On CUDA there is nothing to compile, and no compiler linked in.
  static bool serves(const Unit& unit) { return !Driver::kCuda && unit.source != nullptr; }

  // The code for an architecture; says on stderr what it does, and throws CompileError with the compiler's log.
  // `features` (":sramecc+:xnack-") tell one device's code from another's; the compiler does not take them.
  static std::string compile(const Unit& unit, const std::string& architecture, const std::string& features);

  // "hiprtc 9.0 (/opt/dtk/lib/libhiprtc.so.5)", or why there is none.
  static std::string describe();
};

}  // namespace clover::device
