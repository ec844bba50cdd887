#include "compile_service.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "common/device/failure.hpp"

extern char** environ;

namespace clover::jit {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw device::Failure(CLOVER_COMPILE_ERROR, what);
}

// An unlinked temporary file. The child's text, bytes and messages go through files: whatever their size, neither side
// can wait for the other, and a child that does not read its input raises no SIGPIPE here.
class Scratch {
 public:
  Scratch() : file_(std::tmpfile()) {
    if (file_ == nullptr) fail(std::string("cannot make a temporary file for the compiler: ") + std::strerror(errno));
    fcntl(fileno(file_), F_SETFD, FD_CLOEXEC);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::fclose(file_); }

  int descriptor() const { return fileno(file_); }

  void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
      fail(std::string("cannot write the request for the compiler: ") + std::strerror(errno));
    }
    std::rewind(file_);
  }

  std::string read() {
    std::rewind(file_);
    std::string text;
    char buffer[65536];
    while (const size_t got = std::fread(buffer, 1, sizeof buffer, file_)) text.append(buffer, got);
    return text;
  }

 private:
  std::FILE* file_;
};

std::mutex python_mutex;
std::string own_python;  // empty: python3

std::string python() {
  const char* chosen = std::getenv("CLOVER_OPS_PYTHON");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  const std::lock_guard<std::mutex> lock(python_mutex);
  return own_python.empty() ? "python3" : own_python;
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \r\n") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

// What `python -m clover_ops.jit <words>` prints when it reads `text`.
std::string run(const std::vector<std::string>& words, const std::string& text) {
  const std::string program = python();
  std::vector<std::string> command = {program, "-m", "clover_ops.jit"};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Scratch input, output, errors;
  input.write(text);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.descriptor(), 0);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    fail("cannot run `" + program + "` to compile a kernel: " + std::strerror(error) +
         "; CLOVER_OPS_PYTHON names the Python to use");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail(std::string("the compiler's exit status was lost: ") + std::strerror(errno));
  }
  const std::string said = last_line(errors.read());
  const std::string reason = said.empty() ? "it gave no reason" : said;
  if (WIFSIGNALED(status)) {
    fail("the compiler `" + program + "` ended by signal " + std::to_string(WTERMSIG(status)) + ": " + reason);
  }
  if (WEXITSTATUS(status) != 0) {
    fail("the compiler `" + program + "` exited with " + std::to_string(WEXITSTATUS(status)) + ": " + reason);
  }
  return output.read();
}

}  // namespace

Mode mode() {
  const char* text = std::getenv("CLOVER_OPS_JIT");
  const std::string value = text == nullptr ? "" : text;
  if (value.empty() || value == "on") return Mode::kOn;
  if (value == "bundle") return Mode::kBundle;
  if (value == "off") return Mode::kOff;
  throw device::Failure(CLOVER_INVALID_ARGUMENT, "CLOVER_OPS_JIT must be off, bundle or on, got `" + value + "`");
}

void set_python(const std::string& path) {
  const std::lock_guard<std::mutex> lock(python_mutex);
  own_python = path;
}

// What a Python prints at start-up (a sitecustomize may) stands before the answer.
std::string compile(const std::string& request, const std::string& kernels) {
  const std::string printed = run({"compile", "--kernels", kernels, "--request", "-", "--artifact", "-"}, request);
  const size_t begin = printed.find("CLOVERJ1");
  return begin == std::string::npos ? printed : printed.substr(begin);
}

std::string toolchain() {
  const std::string printed = "\n" + run({"toolchain"}, "");
  const size_t begin = printed.rfind("\ntriton ");
  if (begin == std::string::npos) fail("`" + python() + " -m clover_ops.jit toolchain` names no Triton");
  return printed.substr(begin + 1);
}

}  // namespace clover::jit
