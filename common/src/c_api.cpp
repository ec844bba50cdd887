// The C boundary of everything that is not an operator; operators' functions are in generated/exports.cpp.
#include <clover/plugin.h>

#include <cstring>
#include <string>

#include "build_info.hpp"
#include "dispatch.hpp"
#include "error.hpp"
#include "json.hpp"
#include "registry.hpp"
#include "spec.hpp"
#include "tensor_text.hpp"

namespace clover {
namespace {

const char* status_text(PluginStatus status) {
  switch (status) {
    case PluginStatus::kActive:
      return "active";
    case PluginStatus::kInactive:
      return "inactive";
    default:
      return "rejected";
  }
}

const OperatorSpec& operator_or_throw(uint32_t op) {
  const OperatorSpec* spec = find_operator(op);
  if (spec == nullptr) throw Error(CLOVER_INVALID_ARGUMENT, "no operator has number " + std::to_string(op));
  return *spec;
}

// A plugin describes itself in `key: value` lines.
void write_details(const clover_plugin* plugin, JsonWriter* json) {
  json->key("details").open('{');
  const char* text = plugin != nullptr && plugin->describe != nullptr ? plugin->describe() : nullptr;
  while (text != nullptr && *text != '\0') {
    const char* end = std::strchr(text, '\n');
    const std::string line = end == nullptr ? std::string(text) : std::string(text, end);
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) json->key(line.substr(0, colon)).value(line.substr(colon + 2));
    text = end == nullptr ? nullptr : end + 1;
  }
  json->close('}');
}

void write_plugin(const PluginRecord& record, JsonWriter* json) {
  const Manifest& m = record.manifest;
  json->open('{').key("name").value(m.name).key("manifest").value(m.path).key("library").value(m.library);
  json->key("status").value(std::string(status_text(record.status))).key("reason").value(record.reason);
  json->key("device").value(m.device).key("devices").value(int64_t{record.devices});
  json->key("version").value(m.version).key("toolchain").value(m.toolchain).key("architectures").open('[');
  for (const std::string& architecture : m.architectures) json->value(architecture);
  json->close(']').key("provides").open('[');
  for (const Manifest::Provider& p : m.providers) {
    json->open('{').key("operator").value(p.op).key("slot").value(int64_t{p.slot}).key("name").value(p.name).close('}');
  }
  json->close(']');
  write_details(record.plugin, json);
  json->close('}');
}

std::string describe() {
  Registry& registry = Registry::instance();
  JsonWriter json;
  json.open('{').key("version").value(std::string(kVersion)).key("abi").value(int64_t{CLOVER_ABI_VERSION});
  json.key("plugins").open('[');
  for (const auto& record : registry.plugins()) write_plugin(*record, &json);
  json.close(']').key("operators").open('[');
  for (const OperatorSpec& op : all_operators()) {
    json.open('{').key("name").value(std::string(op.name)).key("number").value(int64_t{op.number});
    json.key("signature").value(std::string(op.signature)).key("providers").open('[');
    for (const ActiveProvider& p : registry.table().providers) {
      if (p.provider->op != op.number) continue;
      json.open('{').key("backend").value(std::string(p.plugin->name));
      json.key("device").value(std::string(device_type_name(p.plugin->device_type)));
      json.key("slot").value(int64_t{p.provider->slot}).key("name").value(std::string(p.provider->name)).close('}');
    }
    json.close(']').close('}');
  }
  json.close(']').close('}');
  return json.text();
}

bool provides(uint32_t op, const char* backend) {
  const OperatorSpec& spec = operator_or_throw(op);
  std::string known;
  for (const auto& record : Registry::instance().plugins()) {
    if (backend != nullptr && record->manifest.name == backend) {
      for (const Manifest::Provider& p : record->manifest.providers)
        if (p.op == spec.name) return true;
      return false;
    }
    known += (known.empty() ? "" : ", ") + record->manifest.name;
  }
  throw Error(CLOVER_INVALID_ARGUMENT, "no backend is called `" + std::string(backend == nullptr ? "" : backend) +
                                           "`; installed: " + (known.empty() ? "none" : known));
}

bool supports(uint32_t op, int32_t device_type, int32_t device_id) {
  const ActiveProvider *first, *last;
  Registry::instance().table().range(operator_or_throw(op).number, device_type, &first, &last);
  for (const ActiveProvider* p = first; p != last; ++p)
    if (device_id >= 0 && device_id < (p->plugin->device_count == nullptr ? 1 : p->plugin->device_count())) return true;
  return false;
}

void warmup(int32_t device_type, int32_t device_id) {
  bool found = false;
  for (const auto& record : Registry::instance().plugins()) {
    const clover_plugin* plugin = record->plugin;
    if (plugin == nullptr || plugin->device_type != device_type) continue;
    found = true;
    char message[1024] = "";
    const int32_t status = plugin->warmup == nullptr ? CLOVER_OK : plugin->warmup(device_id, message, sizeof(message));
    if (status != CLOVER_OK) throw Error(status_of(status), "warmup: " + std::string(message));
  }
  if (!found) throw Error(CLOVER_UNSUPPORTED, "warmup: no active backend on " + device_text(device_type, device_id));
}

}  // namespace
}  // namespace clover

extern "C" {

uint32_t clover_abi_version(void) {
  return CLOVER_ABI_VERSION;
}

const char* clover_version(void) {
  return clover::kVersion;
}

int32_t clover_load_plugin(const char* manifest_path) {
  return clover::guarded([&] {
    if (manifest_path == nullptr) throw clover::Error(CLOVER_INVALID_ARGUMENT, "manifest_path is null");
    clover::Registry::instance().load(manifest_path);
  });
}

int32_t clover_discover_plugins(void) {
  return clover::guarded([] { clover::Registry::instance().discover(); });
}

int32_t clover_call_operator(uint32_t op, const clover_handle* handle, const void* args, uint64_t* missing) {
  return clover::guarded([&] { clover::run_operator(op, handle, args, missing); });
}

int32_t clover_operator_workspace_size(uint32_t op, const clover_handle* handle, const void* args, uint64_t* bytes) {
  return clover::guarded([&] { *bytes = clover::operator_workspace_size(op, handle, args); });
}

int32_t clover_provides(uint32_t op, const char* backend, int32_t* answer) {
  return clover::guarded([&] { *answer = clover::provides(op, backend); });
}

int32_t clover_supports(uint32_t op, int32_t device_type, int32_t device_id, int32_t* answer) {
  return clover::guarded([&] { *answer = clover::supports(op, device_type, device_id); });
}

int32_t clover_warmup(int32_t device_type, int32_t device_id) {
  return clover::guarded([&] { clover::warmup(device_type, device_id); });
}

int32_t clover_set_python(const char* path) {
  return clover::guarded([&] { clover::Registry::instance().set_python(path == nullptr ? "" : path); });
}

int32_t clover_describe(clover_text_sink sink, void* context) {
  return clover::guarded([&] {
    const std::string text = clover::describe();
    sink(context, text.data(), text.size());
  });
}

}  // extern "C"
