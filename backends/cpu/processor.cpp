#include "processor.hpp"

#if defined(__x86_64__)

#include <cpuid.h>

namespace clover::cpu {
namespace {

// The register state that the system saves when it switches threads.
uint64_t saved_state() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx >> 27 & 1) == 0) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

}  // namespace

bool processor_has(const ProcessorFeature& feature) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(feature.leaf, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  const unsigned bits = feature.where == CpuidRegister::kEbx ? ebx : ecx;
  return (bits >> feature.bit & 1) != 0 && (saved_state() & feature.state) == feature.state;
}

}  // namespace clover::cpu

#else

namespace clover::cpu {

bool processor_has(const ProcessorFeature&) {
  return false;
}

}  // namespace clover::cpu

#endif
