#include "runtime_compiler.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "code_cache.hpp"
#include "hiprtc.hpp"
#include "own_folder.hpp"
#include "sha256.hpp"

extern char** environ;

namespace clover::device {
namespace {

const std::vector<std::string> kOptions = {"-std=c++17", "-O3"};

std::string source_of(const Unit& unit) {
  const std::string path = own_folder() + "/hip/" + unit.source;
  const std::string text = read_file(path);
  if (sha256_hex(text) == unit.source_digest) return text;
  throw Failure(CLOVER_COMPILE_ERROR,
                path + (text.empty() ? " is missing" : " is not the source that this plugin was built from") +
                    "; reinstall the plugin");
}

// hipcc of DTK_ROOT, else of PATH; empty when there is none.
std::string find_hipcc() {
  std::vector<std::string> places;
  if (const char* dtk = std::getenv("DTK_ROOT"); dtk != nullptr && *dtk != '\0')
    for (const char* place : {"/bin/hipcc", "/hip/bin/hipcc"}) places.push_back(std::string(dtk) + place);
  std::string path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  for (size_t start = 0; start < path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    if (end > start) places.push_back(path.substr(start, end - start) + "/hipcc");
    start = end + 1;
  }
  for (const std::string& place : places)
    if (access(place.c_str(), X_OK) == 0) return place;
  return "";
}

// A folder that goes with what is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    const char* temporary = std::getenv("TMPDIR");
    path_ = std::string(temporary == nullptr || *temporary == '\0' ? "/tmp" : temporary) + "/clover-hip-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr)
      throw Failure(CLOVER_COMPILE_ERROR, path_ + " cannot be made: " + std::strerror(errno));
  }
  ~ScratchFolder() {
    for (const char* name : {"/unit.hip", "/unit.hsaco", "/log"}) unlink((path_ + name).c_str());
    rmdir(path_.c_str());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Runs a program, its output in the file `log`; its exit status, or -1 when it could not be started.
int run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // Without it hipcc compiles for CUDA wherever there is an nvcc.
  std::string platform = "HIP_PLATFORM=amd";
  std::vector<char*> variables{platform.data()};
  for (char** one = environ; *one != nullptr; ++one)
    if (std::strncmp(*one, "HIP_PLATFORM=", 13) != 0) variables.push_back(*one);
  variables.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed = posix_spawn(&child, command[0].c_str(), &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string compile_by_hipcc(const std::string& hipcc, const std::string& name, const std::string& source,
                             const std::string& architecture) {
  const ScratchFolder scratch;
  std::ofstream(scratch / "unit.hip", std::ios::binary) << source;
  std::vector<std::string> command = {hipcc, "--genco", "--offload-arch=" + architecture};
  command.insert(command.end(), kOptions.begin(), kOptions.end());
  command.insert(command.end(), {"-o", scratch / "unit.hsaco", scratch / "unit.hip"});
  const int status = run(command, scratch / "log");
  const std::string code = read_file(scratch / "unit.hsaco");
  if (status != 0 || code.empty())
    throw Failure(CLOVER_COMPILE_ERROR, hipcc + " cannot compile " + name + " for " + architecture + " (exit status " +
                                            std::to_string(status) + "):\n" + read_file(scratch / "log"));
  return code;
}

struct Compiler {
  std::string hipcc;  // empty: hiprtc
  std::string text;   // what it is, for people and for the identity of what it makes
  std::string path;
};

// Tells an updated compiler from the one that was there before, since versions do not always: its size and time.
std::string state_of(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return "unknown";
  return std::to_string(found.st_size) + " bytes of " + std::to_string(found.st_mtime);
}

// Throws when there is none.
Compiler find_compiler() {
  const Hiprtc& hiprtc = Hiprtc::get();
  if (hiprtc.error().empty()) return {"", "hiprtc " + hiprtc.version() + " (" + hiprtc.path() + ")", hiprtc.path()};
  if (const std::string hipcc = find_hipcc(); !hipcc.empty()) return {hipcc, "hipcc (" + hipcc + ")", hipcc};
  throw Failure(CLOVER_COMPILE_ERROR,
                "there is no HIP compiler: no hiprtc (" + hiprtc.error() +
                    ") and no hipcc in DTK_ROOT or on PATH; set DTK_ROOT to DTK's folder, or install a wheel that "
                    "was built with DTK");
}

void refuse_when_off(const Unit& unit, const std::string& architecture) {
  const char* mode = std::getenv("CLOVER_OPS_JIT");
  if (mode == nullptr || *mode == '\0' || std::strcmp(mode, "on") == 0) return;
  throw Failure(CLOVER_COMPILE_ERROR, "the plugin holds no code for " + architecture + " (it has " +
                                          code_objects().architectures + "), and CLOVER_OPS_JIT=" + mode +
                                          " forbids to compile " + unit.name + "; unset it");
}

void say(const std::string& text) {
  std::fprintf(stderr, "clover-ops: %s\n", text.c_str());
}

}  // namespace

std::string RuntimeCompiler::compile(const Unit& unit, const std::string& architecture, const std::string& features) {
  refuse_when_off(unit, architecture);
  const std::string source = source_of(unit);
  const Compiler compiler = find_compiler();
  std::string header =
      "compiler: " + compiler.text + ", " + state_of(compiler.path) + "\nfeatures: " + features + "\noptions:";
  for (const std::string& option : kOptions) header += " " + option;
  header += "\nsource: " + std::string(unit.source_digest) + "\ntarget: hip:" + architecture + ":" +
            std::to_string(unit.images[0].warp_size) + "\nunit: " + std::string(unit.name) + "\n";
  const std::string identity = sha256_hex(header);

  const CodeCache cache("hip");
  const CodeCache::Lock lock(cache, identity);
  if (const std::string kept = cache.load(identity, header); !kept.empty()) return kept;

  say("compiling " + std::string(unit.name) + " for " + architecture + " by " + compiler.text + " ...");
  const auto start = std::chrono::steady_clock::now();
  const std::string code = compiler.hipcc.empty() ? Hiprtc::get().compile(unit.source, source, architecture, kOptions)
                                                  : compile_by_hipcc(compiler.hipcc, unit.source, source, architecture);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  char took[32];
  std::snprintf(took, sizeof(took), "%.1f s", seconds.count());
  const std::string not_kept = cache.store(identity, header, code);
  say(std::string(unit.name) + " took " + took + "; " +
      (not_kept.empty() ? "kept in " + cache.folder() : "NOT kept for the next process: " + not_kept));
  return code;
}

std::string RuntimeCompiler::describe() {
  try {
    return find_compiler().text;
  } catch (const Failure& failure) {
    return failure.what();
  }
}

}  // namespace clover::device
