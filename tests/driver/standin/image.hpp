// As much of a cubin or PTX text as a driver checks: the architecture, the kernels in it, the sizes of their arguments.
#pragma once

#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace standin {

struct CodeImage {
  bool valid = false, ptx = false, specific = false;
  int capability = 0;
  std::map<std::string, std::vector<int>> kernels;  // name -> bytes of each argument, none when not found
};

inline CodeImage read_ptx(const char* text) {
  CodeImage image;
  const char* target = std::strstr(text, ".target sm_");
  if (target == nullptr) return image;
  image.valid = image.ptx = true;
  char* end = nullptr;
  image.capability = static_cast<int>(std::strtol(target + std::strlen(".target sm_"), &end, 10));
  image.specific = *end == 'a';
  for (const char* at = std::strstr(text, ".entry "); at != nullptr; at = std::strstr(at + 1, ".entry ")) {
    const char* name = at + std::strlen(".entry ");
    const std::string kernel(name, std::strcspn(name, "( \n"));
    const char* size = std::strchr(name, '[');
    image.kernels[kernel];
    if (size != nullptr) image.kernels[kernel] = {std::atoi(size + 1)};
  }
  return image;
}

// .nv.info.<kernel> is a list of {format, attribute, size}; attribute 0x17 with format 4 is an argument: its ordinal is
// the 16 bits at 4, its size the upper 14 bits of the word at 8.
inline std::vector<int> param_sizes(const unsigned char* info, size_t size) {
  std::map<int, int> sizes;
  for (size_t at = 0; at + 4 <= size;) {
    const unsigned format = info[at], attribute = info[at + 1];
    uint16_t value = 0, ordinal = 0;
    uint32_t word = 0;
    std::memcpy(&value, info + at + 2, 2);
    if (format == 4 && attribute == 0x17) {
      std::memcpy(&ordinal, info + at + 8, 2);
      std::memcpy(&word, info + at + 12, 4);
      sizes[ordinal] = static_cast<int>(word >> 18);
    }
    at += 4 + (format == 4 ? value : 0);
  }
  std::vector<int> all;
  for (const auto& one : sizes) all.push_back(one.second);
  return all;
}

inline CodeImage read_cubin(const unsigned char* data) {
  CodeImage image;
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof(header));
  if (header.e_machine != 190) return image;  // EM_CUDA
  image.valid = true;
  // The place of the architecture in the flags moved with version 8 of this ABI.
  image.capability = header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(data + header.e_shoff);
  const char* names = reinterpret_cast<const char*>(data + sections[header.e_shstrndx].sh_offset);
  for (int i = 0; i < header.e_shnum; ++i) {
    const char* name = names + sections[i].sh_name;
    if (std::strncmp(name, ".text.", 6) == 0) image.kernels[name + 6];
  }
  for (int i = 0; i < header.e_shnum; ++i) {
    const char* name = names + sections[i].sh_name;
    if (std::strncmp(name, ".nv.info.", 9) != 0) continue;
    const auto kernel = image.kernels.find(name + 9);
    if (kernel != image.kernels.end()) kernel->second = param_sizes(data + sections[i].sh_offset, sections[i].sh_size);
  }
  return image;
}

inline CodeImage read_image(const void* data) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  return std::memcmp(bytes, ELFMAG, SELFMAG) == 0 ? read_cubin(bytes) : read_ptx(static_cast<const char*>(data));
}

}  // namespace standin
