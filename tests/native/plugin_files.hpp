// Plugins in folders of a test's own: manifests written line by line, libraries copied beside them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace plugin_files {

namespace fs = std::filesystem;

// An empty folder of the working folder.
inline fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::current_path() / "plugin_files" / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return fs::canonical(folder);
}

using Lines = std::vector<std::string>;

// A sound manifest of the plugin `name` in toy_plugin/faulty.cpp.
inline Lines sound_manifest(const std::string& name) {
  return {"clover-plugin 1",
          "name " + name,
          std::string("version ") + EXPECTED_VERSION,
          "abi 1",
          "library libtoy_" + name + ".so",
          "device rocm",
          "probe always",
          "provider cast 0 plain"};
}

inline Lines replaced(Lines lines, const std::string& line, const std::string& by) {
  for (std::string& each : lines)
    if (each == line || each.rfind(line + " ", 0) == 0) each = by;
  return lines;
}

// Writes <root>/clover_ops_<name>/plugin.manifest and returns its path.
inline std::string write_manifest(const fs::path& root, const std::string& name, const Lines& lines) {
  const fs::path folder = root / ("clover_ops_" + name);
  fs::create_directories(folder);
  std::ofstream file(folder / "plugin.manifest", std::ios::binary);
  for (const std::string& line : lines) file << line << "\n";
  return (folder / "plugin.manifest").string();
}

inline void copy_library(const fs::path& root, const std::string& name, const std::string& library,
                         const std::string& file_name) {
  fs::create_directories(root / ("clover_ops_" + name));
  fs::copy_file(library, root / ("clover_ops_" + name) / file_name, fs::copy_options::overwrite_existing);
}

inline void set_variable(const char* name, const std::string& value) {
  setenv(name, value.c_str(), 1);
}

}  // namespace plugin_files
