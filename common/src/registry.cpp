#include "registry.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "build_info.hpp"
#include "environment.hpp"
#include "error.hpp"
#include "spec.hpp"
#include "tensor_text.hpp"
#include "version.hpp"

namespace clover {
namespace {

namespace fs = std::filesystem;

constexpr char kManifestName[] = "plugin.manifest";

// What an interrupted copy leaves is mapped as if it were whole and ends the process with SIGBUS, so the file must
// reach as far as its headers say. Anything else that is wrong with it dlopen tells.
void check_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  ElfW(Ehdr) header{};
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  const unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != own_class) return;
  uint64_t end = std::max<uint64_t>(header.e_phoff + uint64_t{header.e_phnum} * header.e_phentsize,
                                    header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize);
  bool whole = static_cast<bool>(file);
  for (unsigned i = 0; i < header.e_phnum && whole; ++i) {
    ElfW(Phdr) segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + uint64_t{i} * header.e_phentsize));
    file.read(reinterpret_cast<char*>(&segment), sizeof(segment));
    end = std::max<uint64_t>(end, segment.p_offset + segment.p_filesz);
    whole = static_cast<bool>(file);
  }
  if (!whole || fs::file_size(path) < end) throw Error(CLOVER_ABI_MISMATCH, path + ": the file is cut short");
}

// Opens a library for good: plugins register addresses of theirs, and vendor runtimes do not survive dlclose.
void* open_library(const std::string& path) {
  check_whole(path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(CLOVER_ABI_MISMATCH, dlerror());
  return library;
}

template <class Function>
Function symbol(void* library, const std::string& path, const char* name) {
  void* address = dlsym(library, name);
  if (address == nullptr) throw Error(CLOVER_ABI_MISMATCH, path + " does not export " + name);
  return reinterpret_cast<Function>(address);
}

// What can be told from the manifest alone, before any code of the plugin runs.
void check_compatible(const Manifest& manifest) {
  if (manifest.abi != CLOVER_ABI_VERSION)
    throw Error(CLOVER_ABI_MISMATCH, "plugin ABI " + std::to_string(manifest.abi) + ", this core has ABI " +
                                         std::to_string(CLOVER_ABI_VERSION) + "; install clover-ops-" + manifest.name +
                                         " " + kVersion);
  if (!same_version(manifest.version, kVersion))
    throw Error(CLOVER_ABI_MISMATCH, "plugin version " + manifest.version + ", core version " + kVersion +
                                         "; both must be the same: install clover-ops-" + manifest.name + " " +
                                         kVersion);
}

bool backend_selected(const std::string& name, std::string* reason) {
  bool given = false;
  const std::vector<std::string> chosen = environment_list("CLOVER_OPS_BACKENDS", ',', &given);
  if (!given || std::find(chosen.begin(), chosen.end(), name) != chosen.end()) return true;
  *reason = "not among CLOVER_OPS_BACKENDS";
  return false;
}

// How many devices the plugin's probe sees; fewer than one comes with a reason.
int32_t probe_devices(const Manifest& manifest, std::string* reason) {
  if (manifest.probe.empty()) return 1;
  char message[512] = "";
  const auto probe =
      symbol<decltype(&clover_plugin_probe)>(open_library(manifest.probe), manifest.probe, "clover_plugin_probe");
  const int32_t devices = probe(message, sizeof(message));
  if (devices < 1) *reason = message[0] ? message : "no device found";
  return devices;
}

// The library must be what its manifest says.
void check_plugin(const Manifest& manifest, const clover_plugin* plugin) {
  const auto mismatch = [&](const std::string& what) {
    throw Error(CLOVER_ABI_MISMATCH, manifest.library + ": " + what);
  };
  if (plugin == nullptr) mismatch("clover_plugin_entry returned null");
  if (plugin->struct_size < sizeof(clover_plugin)) mismatch("clover_plugin is too small");
  if (plugin->abi_version != CLOVER_ABI_VERSION) mismatch("its ABI is " + std::to_string(plugin->abi_version));
  if (plugin->name == nullptr || manifest.name != plugin->name) mismatch("its name is not `" + manifest.name + "`");
  if (plugin->version == nullptr || !same_version(plugin->version, manifest.version))
    mismatch("its version is not the manifest's " + manifest.version);
  if (plugin->device_type != manifest.device_type) mismatch("its device is not `" + manifest.device + "`");

  std::map<std::pair<std::string, int32_t>, std::string> listed, registered;  // the provider's name
  for (const Manifest::Provider& p : manifest.providers) listed[{p.op, p.slot}] = p.name;
  for (uint64_t i = 0; i < plugin->provider_count; ++i) {
    const clover_provider* provider = plugin->providers[i];
    const OperatorSpec* op = provider == nullptr ? nullptr : find_operator(provider->op);
    if (op == nullptr || provider->struct_size < sizeof(clover_provider) || provider->run == nullptr ||
        provider->name == nullptr)
      mismatch("provider " + std::to_string(i) + " is malformed or of an unknown operator");
    if (!registered.insert({{op->name, provider->slot}, provider->name}).second)
      mismatch("two providers of " + std::string(op->name) + " have slot " + std::to_string(provider->slot));
  }
  if (listed != registered) mismatch("its providers are not those that the manifest lists");
}

void tell_python(const clover_plugin* plugin, const std::string& path) {
  if (plugin->set_python != nullptr) plugin->set_python(path.c_str());
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? path : canonical.string();
}

// <site>/clover_ops/lib/libclover_ops.so -> <site>
std::string site_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&site_folder), &info) == 0 || info.dli_fname == nullptr) return "";
  return fs::path(real_path(info.dli_fname)).parent_path().parent_path().parent_path().string();
}

auto provider_key(const ActiveProvider& p) {
  return std::make_tuple(p.provider->op, p.plugin->device_type, p.provider->slot);
}

}  // namespace

void ProviderTable::range(uint32_t op, int32_t device_type, const ActiveProvider** first,
                          const ActiveProvider** last) const {
  const auto below = [](const ActiveProvider& p, std::pair<uint32_t, int32_t> key) {
    return std::make_pair(p.provider->op, p.plugin->device_type) < key;
  };
  const auto above = [](std::pair<uint32_t, int32_t> key, const ActiveProvider& p) {
    return key < std::make_pair(p.provider->op, p.plugin->device_type);
  };
  const ActiveProvider* begin = providers.data();
  const ActiveProvider* end = begin + providers.size();
  *first = std::lower_bound(begin, end, std::make_pair(op, device_type), below);
  *last = std::upper_bound(*first, end, std::make_pair(op, device_type), above);
}

Registry& Registry::instance() {
  static Registry* registry = new Registry;  // never destroyed: calls may come from other threads until the very end
  return *registry;
}

void Registry::load(const std::string& manifest_path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto record = load_locked(manifest_path);
  if (record->status == PluginStatus::kActive) return;
  throw Error(record->status == PluginStatus::kInactive ? CLOVER_UNSUPPORTED : CLOVER_ABI_MISMATCH,
              manifest_path + ": " + record->reason);
}

std::shared_ptr<const PluginRecord> Registry::load_locked(const std::string& manifest_path) {
  const std::string path = real_path(manifest_path);
  for (const auto& record : records_)
    if (record->manifest.path == path) return record;

  auto record = std::make_shared<PluginRecord>();
  record->manifest.path = path;
  try {
    record->manifest = read_manifest(path);
    check_compatible(record->manifest);
    for (const auto& other : records_)
      if (other->status == PluginStatus::kActive && other->manifest.name == record->manifest.name)
        throw Error(CLOVER_ABI_MISMATCH,
                    "backend `" + record->manifest.name + "` is already loaded from " + other->manifest.path);
    record->status = PluginStatus::kInactive;
    if (backend_selected(record->manifest.name, &record->reason)) {
      record->devices = probe_devices(record->manifest, &record->reason);
      if (record->devices >= 1) {
        const std::string& library = record->manifest.library;
        const auto entry =
            symbol<decltype(&clover_plugin_entry)>(open_library(library), library, "clover_plugin_entry");
        const clover_plugin* plugin = entry();
        check_plugin(record->manifest, plugin);
        record->plugin = plugin;
        record->status = PluginStatus::kActive;
      }
    }
  } catch (const std::exception& error) {
    record->status = PluginStatus::kRejected;
    record->reason = error.what();
  }
  records_.push_back(record);
  if (record->plugin != nullptr) tell_python(record->plugin, python_);
  if (record->status == PluginStatus::kActive) rebuild_table();
  return record;
}

void Registry::add_search_path(const std::string& entry, std::vector<std::string>* manifests) const {
  std::error_code error;
  if (fs::is_regular_file(entry, error)) {
    manifests->push_back(entry);
    return;
  }
  const fs::path inside = fs::path(entry) / kManifestName;
  if (fs::is_regular_file(inside, error)) {
    manifests->push_back(inside.string());
    return;
  }
  std::vector<std::string> found;
  for (fs::directory_iterator it(entry, error), end; !error && it != end; it.increment(error)) {
    const fs::path candidate = it->path() / kManifestName;
    const bool plugin = it->path().filename().string().rfind("clover_ops_", 0) == 0;
    if (plugin && fs::is_regular_file(candidate, error)) found.push_back(candidate.string());
  }
  std::sort(found.begin(), found.end());  // the order of a directory is nobody's promise
  manifests->insert(manifests->end(), found.begin(), found.end());
}

void Registry::discover() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> manifests;
  for (const std::string& entry : environment_list("CLOVER_OPS_PLUGIN_PATH", ':')) {
    const size_t before = manifests.size();
    add_search_path(entry, &manifests);
    if (manifests.size() == before) manifests.push_back(entry);  // recorded as rejected: it holds no manifest
  }
  if (const std::string site = site_folder(); !site.empty()) add_search_path(site, &manifests);
  for (const std::string& manifest : manifests) load_locked(manifest);
  discovered_ = true;
  if (current_.load(std::memory_order_acquire) == nullptr) rebuild_table();
}

void Registry::rebuild_table() {
  auto table = std::make_unique<ProviderTable>();
  for (const auto& record : records_) {
    if (record->status != PluginStatus::kActive) continue;
    for (uint64_t i = 0; i < record->plugin->provider_count; ++i)
      table->providers.push_back({record->plugin, record->plugin->providers[i]});
  }
  // Of two backends with one slot the one that was found first comes first.
  std::stable_sort(table->providers.begin(), table->providers.end(),
                   [](const ActiveProvider& a, const ActiveProvider& b) { return provider_key(a) < provider_key(b); });
  if (discovered_) current_.store(table.get(), std::memory_order_release);
  tables_.push_back(std::move(table));
}

void Registry::set_python(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  python_ = path;
  for (const auto& record : records_)
    if (record->plugin != nullptr) tell_python(record->plugin, path);
}

const ProviderTable& Registry::table() {
  if (const ProviderTable* table = current_.load(std::memory_order_acquire)) return *table;
  discover();
  return *current_.load(std::memory_order_acquire);
}

std::vector<std::shared_ptr<const PluginRecord>> Registry::plugins() {
  table();
  std::lock_guard<std::mutex> lock(mutex_);
  return records_;
}

}  // namespace clover
