// What the build knows: the distribution's version, from the one place that holds it.
#pragma once

namespace clover {

inline constexpr char kVersion[] = CLOVER_OPS_VERSION;

}  // namespace clover
