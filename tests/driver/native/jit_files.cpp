// common/jit against its Python twin: what is asked for on the command line is printed.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "common/device/sha256.hpp"
#include "common/jit/artifact.hpp"
#include "common/jit/request.hpp"

using namespace clover::jit;
using clover::device::sha256_hex;

namespace {

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void print_artifact(const char* path, const char* expected_request) {
  try {
    const Artifact artifact = parse_artifact(read(path), "kernel");
    check_artifact(artifact, {{"request", expected_request}}, "kernel");
    for (const auto& [key, value] : artifact.header) std::printf("%s: %s\n", key.c_str(), value.c_str());
    std::printf("%s\n", sha256_hex(artifact.binary).c_str());
  } catch (const ArtifactFailure& failure) {
    static const char* const problems[] = {"truncated", "damaged", "foreign"};
    std::printf("%s\n%d\n%s\n", problems[static_cast<int>(failure.problem())], failure.status(), failure.what());
  }
}

void print_request() {
  Request request;
  request.kernel = "preview_delta";
  request.source = std::string(64, 'a');
  request.target = "hip:gfx906:64";
  request.features = "sramecc+:xnack-";
  request.arguments = {{"q", "*bf16", "16"}, {"g", "*fp32", ""}, {"T", "i32", "1"}, {"stride", "i64", "16"}};
  request.constexprs = {{"H", "16"}, {"FINAL", "true"}, {"scale", "0.5"}, {"DTYPE", "bf16"}};
  request.num_warps = 2;
  request.num_stages = 3;
  request.options = {{"waves_per_eu", "2"}, {"matrix_instr_nonkdim", "16"}};
  std::printf("%s%s\n%s\n", request.text().c_str(), request.digest().c_str(), request.passed_types().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "sha256" && argc == 3) {
    std::printf("%s\n", sha256_hex(read(argv[2])).c_str());
  } else if (what == "artifact" && argc == 4) {
    print_artifact(argv[2], argv[3]);
  } else if (what == "request") {
    print_request();
  } else {
    return 1;
  }
}
