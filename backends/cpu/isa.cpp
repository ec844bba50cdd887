#include "isa.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "processor.hpp"

#define CLOVER_CPU_ISA_ROW(isa, supported) \
  namespace clover::cpu::isa {             \
  extern const Kernels kernels;            \
  }
#include "clover_cpu_isas.inc"
#undef CLOVER_CPU_ISA_ROW

namespace clover::cpu {
namespace {

// The rows of clover_cpu_isas.inc say what a variant needs by this.
#define CLOVER_CPU_HAS(name)                                      \
  [] {                                                            \
    constexpr ProcessorFeature feature = processor_feature(name); \
    return processor_has(feature);                                \
  }()

struct Variant {
  const char* isa;
  const Kernels* kernels;
  bool supported;
};

void append(char* text, size_t capacity, const char* more) {
  const size_t length = std::strlen(text);
  std::snprintf(text + length, capacity - length, "%s%s", length == 0 ? "" : ", ", more);
}

Selection choose() {
  const Variant variants[] = {
#define CLOVER_CPU_ISA_ROW(isa, supported) {#isa, &isa::kernels, supported},
#include "clover_cpu_isas.inc"
#undef CLOVER_CPU_ISA_ROW
  };

  const char* wanted = std::getenv("CLOVER_OPS_CPU_ISA");
  if (wanted != nullptr && wanted[0] == '\0') wanted = nullptr;
  char usable[96] = "";
  for (const Variant& variant : variants) {
    if (!variant.supported) continue;
    if (wanted == nullptr || std::strcmp(wanted, variant.isa) == 0) return {variant.kernels, variant.isa, ""};
    append(usable, sizeof(usable), variant.isa);
  }

  Selection none{nullptr, "", ""};
  if (wanted == nullptr) {
    std::snprintf(none.error, sizeof(none.error), "this processor lacks even the instructions of the baseline kernels");
  } else {
    std::snprintf(none.error, sizeof(none.error), "CLOVER_OPS_CPU_ISA is '%.60s', but this machine runs only: %s",
                  wanted, usable[0] == '\0' ? "none" : usable);
  }
  return none;
}

}  // namespace

const Selection& selection() {
  static const Selection chosen = choose();
  return chosen;
}

}  // namespace clover::cpu
