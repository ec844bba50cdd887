// A stand-in for HIP's driver library, under whatever name the test gives it. STANDIN_DEVICES lists architectures,
// STANDIN_NUMBERING says how attributes are numbered: `new`, `old` (before HIP 4.3) or `other`; STANDIN_WARP the lanes,
// STANDIN_THREADS the threads of a block that a kernel's registers allow. Compiled with OLDER it lacks what older
// releases lack, with OMIT_CAPTURE a function that Clover cannot do without. Its code objects are real ones, or text:
// "HSACO <architecture> <kernel>...".
#include <elf.h>

#include "control.hpp"

namespace {

enum { kInvalidValue = 1, kInvalidDevice = 101, kInvalidImage = 200, kNoBinary = 209, kNotFound = 500 };

struct StreamObject {
  int device, capturing;
};
struct ModuleObject {
  std::string text;
  int device;
};
struct FunctionObject {
  ModuleObject* module;
  std::string name;
};

std::vector<std::string>& machine() {
  static auto* all = new std::vector<std::string>(standin::devices("gfx906:sramecc+:xnack-"));
  return *all;
}

thread_local int current_device = 0;

const char* numbering() {
  const char* text = std::getenv("STANDIN_NUMBERING");
  return text == nullptr ? "new" : text;
}

bool is(const char* which) {
  return std::strcmp(numbering(), which) == 0;
}

// A code object in words: "HSACO <architecture> <kernel>...", or nothing when it is not one.
std::string words_of(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  if (std::memcmp(bytes, ELFMAG, SELFMAG) != 0) return bytes;
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (header->e_machine != 224) return "";  // EM_AMDGPU
  static const std::map<int, std::string> kArchitectures = {{0x2f, "gfx906"}, {0x30, "gfx908"}, {0x3f, "gfx90a"}};
  const auto known = kArchitectures.find(header->e_flags & 0xff);
  std::string words = "HSACO " + (known == kArchitectures.end() ? "gfx0" : known->second);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_DYNSYM) continue;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes + sections[s].sh_offset);
    const char* names = bytes + sections[sections[s].sh_link].sh_offset;
    for (size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i) {
      const std::string name = names + symbols[i].st_name;
      if (name.size() > 3 && name.compare(name.size() - 3, 3, ".kd") == 0)
        words += " " + name.substr(0, name.size() - 3);
    }
  }
  return words;
}

}  // namespace

EXPORT int hipInit(unsigned) {
  ENTER();
  return 0;
}
EXPORT int hipDriverGetVersion(int* version) {
  ENTER();
  *version = 50422803;
  return 0;
}
EXPORT int hipGetDeviceCount(int* count) {
  ENTER();
  *count = static_cast<int>(machine().size());
  return 0;
}
EXPORT int hipDeviceGet(int* device, int ordinal) {
  ENTER();
  *device = ordinal;
  return 0;
}
EXPORT int hipDeviceGetName(char* name, int capacity, int) {
  ENTER();
  std::snprintf(name, capacity, "Stand-in DCU");
  return 0;
}
EXPORT int hipDeviceGetAttribute(int* value, int attribute, int) {
  ENTER();
  struct Row {
    int fresh, old, value;
  };
  const char* narrow = std::getenv("STANDIN_WARP");
  const int warp = narrow == nullptr ? 64 : std::atoi(narrow);
  const Row kRows[] = {{56, 0, 1024},      {29, 4, 0x7fffffff}, {30, 5, 65535}, {31, 6, 65535},
                       {74, 7, 64 * 1024}, {87, 9, warp},       {63, 14, 60}};
  for (const Row& row : kRows) {
    if ((is("new") && row.fresh == attribute) || (is("old") && row.old == attribute)) {
      *value = row.value;
      return 0;
    }
  }
  if (is("other")) return kInvalidValue;
  *value = 7;  // some other attribute's value
  return 0;
}
// The name stands where no public layout has it.
EXPORT int hipGetDeviceProperties(void* properties, int device) {
  ENTER();
  std::strcpy(static_cast<char*>(properties), "Stand-in DCU");
  std::strcpy(static_cast<char*>(properties) + 1111, machine()[device].c_str());
  return 0;
}
EXPORT int hipGetDevice(int* device) {
  ENTER();
  *device = current_device;
  return 0;
}
EXPORT int hipSetDevice(int device) {
  ENTER();
  if (device >= static_cast<int>(machine().size())) return kInvalidDevice;
  current_device = device;
  return 0;
}
EXPORT int hipModuleLoadData(void** module, const void* image) {
  ENTER();
  const std::string text = words_of(image);
  if (text.rfind("HSACO ", 0) != 0) return kInvalidImage;
  const std::string& device = machine()[current_device];
  const std::string architecture = text.substr(6, text.find(' ', 6) - 6);
  if (device.substr(0, device.find(':')) != architecture) return kNoBinary;
  *module = new ModuleObject{text + " ", current_device};
  return 0;
}
EXPORT int hipModuleUnload(void*) {
  ENTER();
  return 0;
}
EXPORT int hipModuleGetFunction(void** function, void* module, const char* name) {
  ENTER();
  auto* from = static_cast<ModuleObject*>(module);
  if (from->text.find(" " + std::string(name) + " ") == std::string::npos) return kNotFound;
  *function = new FunctionObject{from, name};
  return 0;
}
EXPORT int hipFuncGetAttribute(int* value, int attribute, void*) {
  ENTER();
  const char* threads = std::getenv("STANDIN_THREADS");
  *value = attribute != 0 ? 0 : threads == nullptr ? 1024 : std::atoi(threads);
  return 0;
}
EXPORT int hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** arguments,
                                 void**) {
  ENTER();
  const auto* kernel = static_cast<FunctionObject*>(function);
  if (kernel->module->device != current_device) return kInvalidDevice;
  standin::log_launch(kernel->name.c_str(), current_device, stream, {grid_x, grid_y, grid_z},
                      {block_x, block_y, block_z}, shared, arguments[0], 8);
  return 0;
}
#if !defined(OMIT_CAPTURE)
EXPORT int hipStreamIsCapturing(void* stream, int* status) {
  ENTER();
  *status = stream == nullptr ? 0 : static_cast<StreamObject*>(stream)->capturing;
  return 0;
}
#endif
EXPORT int hipStreamSynchronize(void*) {
  ENTER();
  return 0;
}
EXPORT int hipMemcpyDtoHAsync(void* destination, void* source, size_t bytes, void*) {
  ENTER();
  std::memcpy(destination, source, bytes);
  return 0;
}
#if !defined(OLDER)
EXPORT int hipDrvGetErrorName(int, const char** name) {
  *name = "hipErrorDrv";
  return 0;
}
EXPORT int hipStreamGetDevice(void* stream, int* device) {
  ENTER();
  *device = static_cast<StreamObject*>(stream)->device;
  return 0;
}
#endif
EXPORT const char* hipGetErrorName(int) {
  return "hipErrorStandin";
}
EXPORT const char* hipGetErrorString(int) {
  return "a failure that the test asked for";
}

EXPORT void* standin_stream(int device, int capturing) {
  return new StreamObject{device, capturing};
}
EXPORT void standin_capture(void* stream, int capturing) {
  static_cast<StreamObject*>(stream)->capturing = capturing;
}
