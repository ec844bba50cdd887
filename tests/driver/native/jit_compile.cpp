// The compile service alone: the mode, the toolchain, or the artifact of the request `text` for the kernels in
// `folder`.
#include <cstdio>
#include <string>

#include "common/device/failure.hpp"
#include "common/jit/compile_service.hpp"

int main(int argc, char** argv) {
  try {
    const auto mode = clover::jit::mode();
    if (argc == 1) {
      std::printf("%d", static_cast<int>(mode));
    } else {
      const std::string bytes = argv[1] == std::string("toolchain") ? clover::jit::toolchain()
                                                                    : clover::jit::compile("text\n", "a folder; $HOME");
      std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    }
  } catch (const clover::device::Failure& failure) {
    std::printf("%d %s", failure.status(), failure.what());
  }
}
