#include "dispatch.hpp"

#include <clover/plugin.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "environment.hpp"
#include "error.hpp"
#include "index_values.hpp"
#include "json.hpp"
#include "registry.hpp"
#include "tensor_text.hpp"
#include "validate.hpp"

namespace clover {
namespace {

constexpr uint64_t kMessageBytes = 1024;

bool tracing() {
  static const bool on = environment_switch("CLOVER_OPS_TRACE");
  return on;
}

bool debugging() {
  static const bool on = environment_switch("CLOVER_OPS_DEBUG");
  return on;
}

// Integer attributes that a tuned table sees.
constexpr int kMaxIntegers = 8;

void warn_once(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard<std::mutex> lock(mutex);
  if (said.insert(text).second) std::fprintf(stderr, "clover-ops: %s\n", text.c_str());
}

// A smaller handle comes from an older caller; what it lacks takes its default.
clover_handle read_handle(const OperatorSpec& op, const clover_handle* handle) {
  clover_handle result{};
  result.provider_slot = CLOVER_ANY_SLOT;
  if (handle != nullptr) {
    if (handle->struct_size < sizeof(uint64_t) || handle->struct_size > sizeof(clover_handle))
      throw Error(CLOVER_ABI_MISMATCH, std::string(op.name) + ": handle.struct_size is " +
                                           std::to_string(handle->struct_size) + ", this library knows up to " +
                                           std::to_string(sizeof(clover_handle)));
    std::memcpy(&result, handle, handle->struct_size);
  }
  if (result.provider_slot < CLOVER_ANY_SLOT)
    throw Error(CLOVER_INVALID_ARGUMENT, std::string(op.name) + ": provider slot must be a slot or " +
                                             std::to_string(CLOVER_ANY_SLOT) + " (any), got " +
                                             std::to_string(result.provider_slot));
  return result;
}

// Makes the tensors' device current for the length of a call.
class DeviceScope {
 public:
  DeviceScope(const clover_plugin* plugin, const Call& call, void* stream) : plugin_(plugin), device_(call.device_id) {
    if (plugin_->enter_device == nullptr) return;
    char message[kMessageBytes] = "";
    const int32_t status = plugin_->enter_device(device_, stream, &token_, message, sizeof(message));
    if (status != CLOVER_OK) throw Error(status_of(status), std::string(call.op->name) + ": " + message);
    entered_ = true;
  }
  ~DeviceScope() {
    if (entered_ && plugin_->leave_device != nullptr) plugin_->leave_device(device_, token_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const clover_plugin* plugin_;
  int32_t device_;
  void* token_ = nullptr;
  bool entered_ = false;
};

class Dispatcher {
 public:
  Dispatcher(uint32_t op, const clover_handle* handle, const void* args, bool run) {
    const OperatorSpec* spec = find_operator(op);
    if (spec == nullptr) throw Error(CLOVER_INVALID_ARGUMENT, "no operator has number " + std::to_string(op));
    tracing(), debugging();  // a switch that means nothing is refused by every call, also where it is not looked at
    handle_ = read_handle(*spec, handle);
    validate(*spec, args, run, &call_);
    Registry::instance().table().range(op, call_.device_type, &first_, &last_);
    view_.struct_size = sizeof(view_);
    view_.stream = handle_.stream;
    view_.device_id = call_.device_id;
    view_.message = message_;
    view_.message_capacity = sizeof(message_);
  }

  void run(uint64_t* missing) {
    // Index values that the host can read are part of what makes a call right, whoever runs it.
    if (call_.device_type == CLOVER_CPU) check_index_values(call_, nullptr);
    if (first_ == last_) refuse_no_provider();
    const DeviceScope device(first_->plugin, call_, handle_.stream);
    if (call_.device_type != CLOVER_CPU && debugging()) check_device_indices();
    const ActiveProvider& chosen = choose();
    const uint64_t need = workspace_of(*chosen.provider);
    if (missing != nullptr) {
      *missing = handle_.workspace == nullptr ? need : 0;
      if (*missing != 0) return;
    }
    if (need != 0) take_workspace(need);
    message_[0] = '\0';
    const int32_t status = chosen.provider->run(&view_, call_.args, call_.dims);
    if (status != CLOVER_OK) throw Error(status_of(status), prefix() + provider_text(chosen) + ": " + message_);
  }

  // What the choice may come to: the provider of the handle's slot, else the lowest that accepts and the one that the
  // tuned table prefers, which may yet turn out not to be had. Not of every other one: some trade memory for speed.
  uint64_t workspace_size() {
    if (first_ == last_) refuse_no_provider();
    const ActiveProvider* lowest = lowest_accepting();
    if (lowest == nullptr) refuse_all();
    const ActiveProvider* tuned = handle_.provider_slot == CLOVER_ANY_SLOT ? preferred() : nullptr;
    const bool may_run = tuned != nullptr && accepts(*tuned);
    return std::max(workspace_of(*lowest->provider), may_run ? workspace_of(*tuned->provider) : 0);
  }

 private:
  std::string prefix() const { return std::string(call_.op->name) + ": "; }

  static std::string provider_text(const ActiveProvider& p) {
    return std::string(p.plugin->name) + " provider " + std::to_string(p.provider->slot) + " (" + p.provider->name +
           ")";
  }

  bool wanted(const ActiveProvider& p) const {
    return handle_.provider_slot == CLOVER_ANY_SLOT || handle_.provider_slot == p.provider->slot;
  }

  bool accepts(const ActiveProvider& p) {
    message_[0] = '\0';
    return p.provider->accept == nullptr || p.provider->accept(&view_, call_.args, call_.dims) != 0;
  }

  uint64_t workspace_of(const clover_provider& provider) {
    return provider.workspace_bytes == nullptr ? 0 : provider.workspace_bytes(&view_, call_.args, call_.dims);
  }

  // The handle's slot, else what the device's tuned table prefers, else the lowest slot that accepts.
  const ActiveProvider& choose() {
    const bool any = handle_.provider_slot == CLOVER_ANY_SLOT;
    const ActiveProvider* p = any ? preferred() : nullptr;
    const char* by = "tuned table";
    if (p == nullptr || !takes(*p)) p = lowest_accepting(), by = any ? "lowest slot" : "handle";
    if (p == nullptr) refuse_all();
    if (tracing()) trace(*p, by);
    return *p;
  }

  const ActiveProvider* lowest_accepting() {
    for (const ActiveProvider* p = first_; p != last_; ++p)
      if (wanted(*p) && accepts(*p)) return p;
    return nullptr;
  }

  // What the table names for this call; null where there is no table, and where it names nothing.
  const ActiveProvider* preferred() {
    const clover_plugin* plugin = first_->plugin;
    if (plugin->preferred_slot == nullptr) return nullptr;
    const OperatorSpec& op = *call_.op;
    const char* names[kMaxSymbols + kMaxIntegers];
    int64_t values[kMaxSymbols + kMaxIntegers];
    uint64_t count = 0;
    for (int32_t i = 0; i < op.symbols.count; ++i, ++count) names[count] = op.symbols[i], values[count] = call_.dims[i];
    for (const AttributeSpec& a : op.attributes) {
      if (a.type != AttributeType::kInt || count == kMaxSymbols + kMaxIntegers) continue;
      names[count] = a.name;
      std::memcpy(&values[count++], call_.args + a.offset, sizeof(int64_t));
    }
    const clover_sizes sizes{op.name, count, names, values};
    const int32_t slot = plugin->preferred_slot(call_.device_id, &sizes);
    for (const ActiveProvider* p = first_; p != last_; ++p)
      if (p->plugin == plugin && p->provider->slot == slot) return p;
    return nullptr;
  }

  // Whether the table's choice takes the call. A kernel that cannot be had leaves the call to the providers that need
  // none, and that is said.
  bool takes(const ActiveProvider& p) {
    if (p.provider->prepare == nullptr) return accepts(p);
    message_[0] = '\0';
    const int32_t status = p.provider->prepare(&view_, call_.args, call_.dims);
    if (status != CLOVER_OK && status != CLOVER_UNSUPPORTED)
      warn_once(prefix() + provider_text(p) + ", which the tuned table prefers, is passed over: " + message_);
    return status == CLOVER_OK;
  }

  void trace(const ActiveProvider& chosen, const char* by) {
    JsonWriter json;
    json.open('{').key("op").value(std::string(call_.op->name));
    json.key("device").value(device_text(call_.device_type, call_.device_id));
    json.key("backend").value(std::string(chosen.plugin->name)).key("slot").value(int64_t{chosen.provider->slot});
    json.key("provider")
        .value(std::string(chosen.provider->name))
        .key("by")
        .value(std::string(by))
        .key("dims")
        .open('{');
    for (int32_t i = 0; i < call_.op->symbols.count; ++i) json.key(call_.op->symbols[i]).value(call_.dims[i]);
    json.close('}').close('}');
    std::fprintf(stderr, "clover-ops: %s\n", json.text().c_str());
  }

  // Every provider that was asked, with its reason.
  [[noreturn]] void refuse_all() {
    std::string reasons;
    for (const ActiveProvider* p = first_; p != last_; ++p) {
      const char* reason = "another slot was asked for";
      if (wanted(*p)) {
        if (accepts(*p)) continue;
        reason = message_[0] ? message_ : "it does not take this call";
      }
      reasons += "; " + provider_text(*p) + ": " + reason;
    }
    const std::string slot = handle_.provider_slot == CLOVER_ANY_SLOT
                                 ? "no provider"
                                 : "no provider in slot " + std::to_string(handle_.provider_slot);
    throw Error(CLOVER_UNSUPPORTED, prefix() + slot + " on " + device_text(call_.device_type, call_.device_id) +
                                        " takes this call" + reasons);
  }

  [[noreturn]] void refuse_no_provider() {
    const std::string device = device_text(call_.device_type, call_.device_id);
    std::string provided, absent;
    for (const auto& record : Registry::instance().plugins()) {
      const Manifest& m = record->manifest;
      const bool provides =
          std::any_of(m.providers.begin(), m.providers.end(), [&](const auto& p) { return p.op == call_.op->name; });
      if (provides && record->status == PluginStatus::kActive)
        provided += (provided.empty() ? "" : ", ") + m.name + " (" + m.device + ")";
      else if (record->status != PluginStatus::kActive)
        absent += "; " + (m.name.empty() ? m.path : m.name) + " is not active: " + record->reason;
    }
    throw Error(CLOVER_UNSUPPORTED, prefix() + "no active backend provides it on " + device +
                                        "; provided by: " + (provided.empty() ? "none" : provided) + absent);
  }

  void take_workspace(uint64_t need) {
    const auto refuse = [&](const std::string& what) {
      throw Error(CLOVER_MISSING_WORKSPACE, prefix() + "workspace is " + what + ", it needs " + std::to_string(need) +
                                                " bytes (see clover_" + call_.op->name + "_workspace_size)");
    };
    if (handle_.workspace == nullptr) refuse("missing");
    if (handle_.workspace_bytes < need) refuse("too small: " + std::to_string(handle_.workspace_bytes) + " bytes");
    if (reinterpret_cast<uintptr_t>(handle_.workspace) % CLOVER_WORKSPACE_ALIGNMENT != 0)
      refuse("misaligned: it must be aligned to " + std::to_string(CLOVER_WORKSPACE_ALIGNMENT) + " bytes");
    view_.workspace = handle_.workspace;
    view_.workspace_bytes = handle_.workspace_bytes;
  }

  void check_device_indices() {
    const clover_plugin* plugin = first_->plugin;
    std::vector<std::vector<char>> copies;
    const HostReader reader = [&](uintptr_t first, uintptr_t end) -> const void* {
      const void* source = reinterpret_cast<const void*>(first);
      if (plugin->copy_to_host == nullptr) return source;
      copies.emplace_back(end - first);
      message_[0] = '\0';
      const int32_t status =
          plugin->copy_to_host(copies.back().data(), source, end - first, handle_.stream, message_, sizeof(message_));
      if (status != CLOVER_OK) throw Error(status_of(status), prefix() + message_);
      return copies.back().data();
    };
    check_index_values(call_, &reader);
  }

  clover_handle handle_;
  Call call_;
  clover_call view_{};
  char message_[kMessageBytes] = "";
  const ActiveProvider* first_ = nullptr;
  const ActiveProvider* last_ = nullptr;
};

}  // namespace

void run_operator(uint32_t op, const clover_handle* handle, const void* args, uint64_t* missing) {
  Dispatcher(op, handle, args, true).run(missing);
}

uint64_t operator_workspace_size(uint32_t op, const clover_handle* handle, const void* args) {
  return Dispatcher(op, handle, args, false).workspace_size();
}

}  // namespace clover
