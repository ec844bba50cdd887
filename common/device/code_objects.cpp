#include "code_objects.hpp"

#include <cstdlib>
#include <cstring>

namespace clover::device {
namespace {

// "90a" -> 90, with `specific` set for the letter.
int capability_of(const char* architecture, bool* specific) {
  char* end = nullptr;
  const long number = std::strtol(architecture, &end, 10);
  *specific = *end != '\0';
  return static_cast<int>(number);
}

bool runs_on(const Image& image, int capability, int device) {
  if (image.kind == ImageKind::kBinary && capability / 10 != device / 10) return false;
  return capability <= device;
}

const Image* choose_cuda(const Unit& unit, int device) {
  const Image* best = nullptr;
  int best_rank = -1;
  for (size_t i = 0; i < unit.image_count; ++i) {
    const Image& image = unit.images[i];
    bool specific = false;
    const int capability = capability_of(image.architecture, &specific);
    if (specific ? capability != device : !runs_on(image, capability, device)) continue;
    const int rank = capability * 4 + (image.kind == ImageKind::kBinary ? 2 : 0) + (specific ? 1 : 0);
    const bool binary_before_ptx = image.kind == ImageKind::kBinary && best != nullptr && best->kind == ImageKind::kPtx;
    const bool ptx_after_binary = image.kind == ImageKind::kPtx && best != nullptr && best->kind == ImageKind::kBinary;
    if (ptx_after_binary || (!binary_before_ptx && rank <= best_rank)) continue;
    best = &image;
    best_rank = rank;
  }
  return best;
}

}  // namespace

const Image* choose_image(const Unit& unit, const std::string& architecture) {
  if (architecture.compare(0, 3, "gfx") != 0) return choose_cuda(unit, std::atoi(architecture.c_str()));
  for (size_t i = 0; i < unit.image_count; ++i)
    if (architecture == unit.images[i].architecture) return &unit.images[i];
  return nullptr;
}

}  // namespace clover::device
