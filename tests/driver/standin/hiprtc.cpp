// A stand-in for hiprtc. It "compiles" a source to the stand-in driver's words: the kernels are those that a line
// `// kernels: NAME...` names. A source with BROKEN in it does not compile. Each compile adds a line to the file
// STANDIN_COMPILED.
#include <unistd.h>

#include <fstream>

#include "control.hpp"

namespace {

struct Program {
  std::string name, source, log, code;
};

std::string kernels_of(const std::string& source) {
  const std::string mark = "// kernels:";
  const size_t at = source.find(mark);
  return at == std::string::npos ? "" : source.substr(at + mark.size(), source.find('\n', at) - at - mark.size());
}

}  // namespace

EXPORT int hiprtcVersion(int* major, int* minor) {
  *major = 9;
  *minor = 7;
  return 0;
}
EXPORT const char* hiprtcGetErrorString(int status) {
  return status == 6 ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR_OTHER";
}
EXPORT int hiprtcCreateProgram(void** program, const char* source, const char* name, int, const char* const*,
                               const char* const*) {
  ENTER();
  *program = new Program{name, source, "", ""};
  return 0;
}
EXPORT int hiprtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}
EXPORT int hiprtcCompileProgram(void* program, int count, const char* const* options) {
  ENTER();
  auto* own = static_cast<Program*>(program);
  std::string line = own->name;
  std::string architecture;
  for (int i = 0; i < count; ++i) {
    line += std::string(" ") + options[i];
    if (std::strncmp(options[i], "--offload-arch=", 15) == 0) architecture = options[i] + 15;
  }
  if (const char* path = std::getenv("STANDIN_COMPILED")) std::ofstream(path, std::ios::app) << line << "\n";
  usleep(50000);  // long enough for others to come meanwhile
  if (own->source.find("BROKEN") != std::string::npos) {
    own->log = own->name + ":1:1: error: it is broken";
    return 6;
  }
  own->code = "HSACO " + architecture + kernels_of(own->source);
  return 0;
}
EXPORT int hiprtcGetProgramLogSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->log.size() + 1;
  return 0;
}
EXPORT int hiprtcGetProgramLog(void* program, char* log) {
  std::strcpy(log, static_cast<Program*>(program)->log.c_str());
  return 0;
}
EXPORT int hiprtcGetCodeSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->code.size() + 1;
  return 0;
}
EXPORT int hiprtcGetCode(void* program, char* code) {
  std::strcpy(code, static_cast<Program*>(program)->code.c_str());
  return 0;
}
