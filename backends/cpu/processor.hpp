// What the processor, and the operating system with it, can run. Asked of the processor itself: __builtin_cpu_supports
// needs a run-time library that not every toolchain links.
#pragma once

#include <cstdint>

namespace clover::cpu {

enum class CpuidRegister { kEbx, kEcx };

// Where CPUID tells of a feature, and which register state the system must keep for it (bits of XCR0).
struct ProcessorFeature {
  const char* name;  // as in -m<name>
  uint32_t leaf;
  CpuidRegister where;
  int bit;
  uint64_t state;
};

constexpr uint64_t kYmmState = 0x06;
constexpr uint64_t kZmmState = 0xE6;

constexpr ProcessorFeature kProcessorFeatures[] = {
    {"sse4.2", 1, CpuidRegister::kEcx, 20, 0},
    {"popcnt", 1, CpuidRegister::kEcx, 23, 0},
    {"fma", 1, CpuidRegister::kEcx, 12, kYmmState},
    {"f16c", 1, CpuidRegister::kEcx, 29, kYmmState},
    {"bmi", 7, CpuidRegister::kEbx, 3, 0},
    {"avx2", 7, CpuidRegister::kEbx, 5, kYmmState},
    {"bmi2", 7, CpuidRegister::kEbx, 8, 0},
    {"avx512f", 7, CpuidRegister::kEbx, 16, kZmmState},
    {"avx512dq", 7, CpuidRegister::kEbx, 17, kZmmState},
    {"avx512cd", 7, CpuidRegister::kEbx, 28, kZmmState},
    {"avx512bw", 7, CpuidRegister::kEbx, 30, kZmmState},
    {"avx512vl", 7, CpuidRegister::kEbx, 31, kZmmState},
};

// Fails to compile for a name that the table lacks.
constexpr const ProcessorFeature& processor_feature(const char* name) {
  for (const ProcessorFeature& feature : kProcessorFeatures) {
    const char* a = feature.name;
    const char* b = name;
    while (*a != '\0' && *a == *b) ++a, ++b;
    if (*a == *b) return feature;
  }
  throw "kProcessorFeatures has no such feature";
}

bool processor_has(const ProcessorFeature& feature);

}  // namespace clover::cpu
