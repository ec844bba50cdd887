// The plugins that were found and the providers of the active ones.
#pragma once

#include <clover/plugin.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "manifest.hpp"

namespace clover {

enum class PluginStatus { kActive, kInactive, kRejected };

struct PluginRecord {
  Manifest manifest;  // path alone when the manifest could not be read
  PluginStatus status = PluginStatus::kRejected;
  std::string reason;  // why it is not active
  int32_t devices = 0;
  const clover_plugin* plugin = nullptr;
};

struct ActiveProvider {
  const clover_plugin* plugin;
  const clover_provider* provider;
};

// What calls read: built anew for each plugin that loads and then never changed, so that reading takes no lock.
struct ProviderTable {
  // Sorted by operator number, device type and slot.
  std::vector<ActiveProvider> providers;

  // [first, last) of the providers of an operator on a device type.
  void range(uint32_t op, int32_t device_type, const ActiveProvider** first, const ActiveProvider** last) const;
};

class Registry {
 public:
  static Registry& instance();

  // Loads one plugin and throws the reason when it is not active; discovery records reasons and goes on.
  void load(const std::string& manifest_path);
  void discover();

  // Tells every plugin, those that load later too, which Python to compile with.
  void set_python(const std::string& path);

  // The current table; discovers plugins first if nobody has yet.
  const ProviderTable& table();
  std::vector<std::shared_ptr<const PluginRecord>> plugins();

 private:
  std::shared_ptr<const PluginRecord> load_locked(const std::string& manifest_path);
  void add_search_path(const std::string& entry, std::vector<std::string>* manifests) const;
  void rebuild_table();

  std::mutex mutex_;
  bool discovered_ = false;
  std::string python_;
  std::vector<std::shared_ptr<const PluginRecord>> records_;
  std::vector<std::unique_ptr<const ProviderTable>> tables_;  // old ones stay: a call may still be reading one
  std::atomic<const ProviderTable*> current_{nullptr};
};

}  // namespace clover
