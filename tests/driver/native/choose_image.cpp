// Prints which image a device takes of one unit: `choose_image DEVICE IMAGE...`, images as 80, 90a or ptx90, gfx906.
#include <cstdio>
#include <cstring>
#include <vector>

#include "common/device/code_objects.hpp"

int main(int count, char** arguments) {
  using namespace clover::device;
  std::vector<Image> images;
  for (int i = 2; i < count; ++i) {
    const bool ptx = std::strncmp(arguments[i], "ptx", 3) == 0;
    images.push_back(
        {arguments[i] + (ptx ? 3 : 0), ptx ? ImageKind::kPtx : ImageKind::kBinary, nullptr, nullptr, 0, 64, nullptr});
  }
  const Unit unit = {"unit", images.data(), images.size(), nullptr, nullptr};
  const Image* chosen = choose_image(unit, arguments[1]);
  std::printf("%s\n", chosen == nullptr ? "none" : arguments[2 + (chosen - images.data())]);
}
