// Where a compiled kernel comes from: the bundle beside the plugin, the user's cache, the compiler.
#pragma once

#include <string>
#include <vector>

#include "artifact.hpp"
#include "request.hpp"

namespace clover::jit {

struct Found {
  Artifact artifact;
  std::string request;  // digest of the one that it answers
};

// `requests` are the same kernel for each target whose code a device runs, best first. Only the first is compiled for.

// The bundle's artifact for one of them; false where it has none. Throws when it is damaged or foreign.
bool find_bundled(const std::vector<Request>& requests, Found* found);

// Why there is no such kernel where CLOVER_OPS_JIT forbids to compile it; an empty text when the bundle has it.
std::string why_not(const std::vector<Request>& requests);

// From the bundle, the cache or the compiler, as CLOVER_OPS_JIT allows; throws why there is none.
Found obtain(const std::vector<Request>& requests);

// The bundle's files.
std::vector<std::string> bundle_files();

}  // namespace clover::jit
