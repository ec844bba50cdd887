// A compiled kernel as one file that checks itself; docs/jit.md has the format, clover_ops/jit/artifact.py its twin.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/device/failure.hpp"

namespace clover::jit {

enum class Problem { kTruncated, kDamaged, kForeign };

class ArtifactFailure : public device::Failure {
 public:
  ArtifactFailure(Problem problem, std::string message)
      : Failure(CLOVER_COMPILE_ERROR, std::move(message)), problem_(problem) {}
  Problem problem() const { return problem_; }

 private:
  Problem problem_;
};

struct Artifact {
  std::map<std::string, std::string> header;  // every key of the format
  std::string binary;

  const std::string& text(const char* key) const { return header.at(key); }
  uint64_t number(const char* key) const;
};

// Throws ArtifactFailure (truncated or damaged); `where` begins its message.
Artifact parse_artifact(std::string_view data, const std::string& where);

// Throws ArtifactFailure (foreign) unless the header has each of these values.
void check_artifact(const Artifact& artifact, const std::map<std::string, std::string>& expected,
                    const std::string& where);

}  // namespace clover::jit
