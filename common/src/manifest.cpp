#include "manifest.hpp"

#include <clover/abi.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "error.hpp"

namespace clover {
namespace {

constexpr unsigned long kLargestNumber = 1000000;

[[noreturn]] void broken(const std::string& path, int line, const std::string& what) {
  throw Error(CLOVER_INVALID_ARGUMENT, path + ":" + std::to_string(line) + ": " + what);
}

uint32_t whole_number(const std::string& path, int line, const std::string& key, const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const unsigned long value = digits ? std::strtoul(text.c_str(), nullptr, 10) : 0;
  if (!digits || value > kLargestNumber) broken(path, line, "`" + key + "` must be a whole number, got `" + text + "`");
  return static_cast<uint32_t>(value);
}

int32_t device_type_of(const std::string& device) {
  return device == "cpu" ? CLOVER_CPU : device == "cuda" ? CLOVER_CUDA : device == "rocm" ? CLOVER_ROCM : 0;
}

// A file named in a manifest lies beside it; a manifest cannot reach elsewhere.
std::string beside(const std::string& path, int line, const std::string& key, const std::string& file) {
  if (file.empty() || file.find('/') != std::string::npos)
    broken(path, line, "`" + key + "` must be a file name without folders, got `" + file + "`");
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? file : path.substr(0, slash + 1) + file;
}

}  // namespace

Manifest read_manifest(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(CLOVER_INVALID_ARGUMENT, path + ": cannot be read");
  Manifest manifest;
  manifest.path = path;
  std::set<std::string> seen;
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.empty() || text[0] == '#') continue;
    const size_t space = text.find(' ');
    const std::string key = text.substr(0, space);
    const std::string value = space == std::string::npos ? "" : text.substr(space + 1);
    if (seen.empty()) {
      if (key != "clover-plugin") broken(path, line, "not a plugin manifest: must begin with `clover-plugin 1`");
      if (value != "1")
        throw Error(CLOVER_ABI_MISMATCH,
                    path + ":" + std::to_string(line) + ": manifest format " + value + ", this library reads format 1");
    } else if (key == "architecture") {
      manifest.architectures.push_back(value);
    } else if (key == "provider") {
      std::istringstream words(value);
      std::string op, slot, name, rest;
      words >> op >> slot >> name;
      if (name.empty() || words >> rest) broken(path, line, "`provider` needs an operator, a slot and a name");
      const int32_t number = static_cast<int32_t>(whole_number(path, line, "slot", slot));
      for (const Manifest::Provider& other : manifest.providers)
        if (other.op == op && other.slot == number) broken(path, line, op + " has two providers in slot " + slot);
      manifest.providers.push_back({op, number, name});
    } else if (seen.count(key)) {
      broken(path, line, "`" + key + "` is given twice");
    } else if (value.empty() && key != "toolchain") {
      broken(path, line, "`" + key + "` has no value");
    } else if (key == "name") {
      manifest.name = value;
    } else if (key == "version") {
      manifest.version = value;
    } else if (key == "abi") {
      manifest.abi = whole_number(path, line, key, value);
    } else if (key == "library") {
      manifest.library = beside(path, line, key, value);
    } else if (key == "device") {
      manifest.device = value;
      manifest.device_type = device_type_of(value);
      if (manifest.device_type == 0) broken(path, line, "`device` must be cpu, cuda or rocm, got `" + value + "`");
    } else if (key == "probe") {
      if (value != "always") manifest.probe = beside(path, line, key, value);
    } else if (key == "toolchain") {
      manifest.toolchain = value;
    } else {
      broken(path, line, "unknown key `" + key + "`");
    }
    seen.insert(key);
  }
  for (const char* key : {"clover-plugin", "name", "version", "abi", "library", "device", "probe"})
    if (!seen.count(key)) throw Error(CLOVER_INVALID_ARGUMENT, path + ": lacks `" + std::string(key) + "`");
  return manifest;
}

}  // namespace clover
