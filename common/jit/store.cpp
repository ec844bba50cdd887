#include "store.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "common/device/code_cache.hpp"
#include "common/device/own_folder.hpp"
#include "common/device/sha256.hpp"
#include "compile_service.hpp"

namespace clover::jit {
namespace {

std::string bundle_folder() {
  return device::own_folder() + "/bundle";
}

std::string bundle_path(const std::string& digest) {
  return bundle_folder() + "/" + digest + ".clvk";
}

// The artifact that `data` is, once it has been checked to be this request's.
Artifact checked(const std::string& data, const Request& request, const std::string& where) {
  Artifact artifact = parse_artifact(data, where);
  const size_t colon = request.target.find(':'), end = request.target.rfind(':');
  check_artifact(artifact,
                 {{"kernel", request.kernel},
                  {"target", request.target},
                  {"features", request.features},
                  {"architecture", request.target.substr(colon + 1, end - colon - 1)},
                  {"warp_size", request.target.substr(end + 1)},
                  {"binary_kind", request.target.compare(0, colon, "cuda") == 0 ? "cubin" : "hsaco"},
                  {"extra_arguments", "global_scratch profile_scratch"},
                  {"source", request.source},
                  {"arguments", request.passed_types()},
                  {"request", request.digest()}},
                 where);
  return artifact;
}

void say(const std::string& text) {
  std::fprintf(stderr, "clover-ops: %s\n", text.c_str());
}

// Which Triton there is does not change while a process runs; that there is none may.
std::string toolchain_text() {
  static std::mutex mutex;
  static std::string known;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.empty()) known = toolchain();
  return known;
}

std::string forbidden(const Request& request) {
  return "kernel " + request.kernel + " for " + request.target +
         " is not in the bundle, and CLOVER_OPS_JIT=bundle forbids to compile it";
}

std::string off(const Request& request) {
  return "kernel " + request.kernel + ": CLOVER_OPS_JIT=off: no Triton kernel is loaded";
}

}  // namespace

bool find_bundled(const std::vector<Request>& requests, Found* found) {
  for (const Request& request : requests) {
    const std::string digest = request.digest(), path = bundle_path(digest);
    if (access(path.c_str(), F_OK) != 0) continue;
    *found = {checked(device::read_file(path), request, path), digest};
    return true;
  }
  return false;
}

std::string why_not(const std::vector<Request>& requests) {
  if (mode() == Mode::kOff) return off(requests[0]);
  const auto bundled = [](const Request& one) { return access(bundle_path(one.digest()).c_str(), F_OK) == 0; };
  return std::any_of(requests.begin(), requests.end(), bundled) ? "" : forbidden(requests[0]);
}

Found obtain(const std::vector<Request>& requests) {
  const Mode allowed = mode();
  const Request& request = requests[0];
  if (allowed == Mode::kOff) throw device::Failure(CLOVER_COMPILE_ERROR, off(request));
  Found found;
  try {
    if (find_bundled(requests, &found)) return found;
  } catch (const ArtifactFailure& failure) {
    if (allowed == Mode::kBundle) throw;
    say(std::string(failure.what()) + "; the kernel is compiled instead");
  }
  if (allowed == Mode::kBundle) throw device::Failure(CLOVER_COMPILE_ERROR, forbidden(request));

  // The compiler looks into the cache too, but to ask it costs the start of an interpreter.
  const std::string text = request.text(), digest = request.digest();
  const std::string identity = device::sha256_hex(text + toolchain_text());
  try {
    const std::string kept = device::CodeCache("jit").read(identity);
    if (!kept.empty()) return {checked(kept, request, "the cache's " + identity), digest};
  } catch (const ArtifactFailure&) {  // the compiler says so, and compiles anew
  }
  return {checked(compile(text, device::own_folder() + "/triton"), request, "what the compiler gave"), digest};
}

std::vector<std::string> bundle_files() {
  std::vector<std::string> paths;
  DIR* folder = opendir(bundle_folder().c_str());
  if (folder == nullptr) return paths;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name.size() > 5 && name.compare(name.size() - 5, 5, ".clvk") == 0)
      paths.push_back(bundle_folder() + "/" + name);
  }
  closedir(folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace clover::jit
