#include "plugin.hpp"

#include <clover_backend/registration.hpp>
#include <string>

#include "code_objects.hpp"
#include "common/jit/compile_service.hpp"
#include "common/jit/triton.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "runtime_compiler.hpp"

namespace clover::device {
namespace {

int32_t device_count() {
  int32_t count = 0;
  guarded(nullptr, 0, [&] { count = static_cast<int32_t>(devices().size()); });
  return count;
}

int32_t enter_device(int32_t ordinal, void* stream, void** token, char* message, uint64_t capacity) {
  return guarded(message, capacity, [&] { *token = device(ordinal).enter(stream); });
}

void leave_device(int32_t, void* token) {
  Device::leave(token);
}

// The core has made the device current.
int32_t copy_to_host(void* destination, const void* source, uint64_t bytes, void* stream, char* message,
                     uint64_t capacity) {
  return guarded(message, capacity, [&] {
    const driver::Table& table = Driver::table();
    int capturing = 0;
    check("StreamIsCapturing", table.StreamIsCapturing(stream, &capturing), "before reading index values");
    if (capturing != 0)
      throw Failure(CLOVER_UNSUPPORTED,
                    "CLOVER_OPS_DEBUG=1 reads index values on the host, which a stream being captured does not allow; "
                    "unset it for captures");
    check("MemcpyDtoHAsync", table.MemcpyDtoHAsync(destination, reinterpret_cast<uintptr_t>(source), bytes, stream),
          "while reading index values");
    check("StreamSynchronize", table.StreamSynchronize(stream), "while reading index values");
  });
}

int32_t warmup(int32_t ordinal, char* message, uint64_t capacity) {
  return guarded(message, capacity, [&] {
    Device& on = device(ordinal);
    struct Scope {
      void* token;
      ~Scope() { Device::leave(token); }
    } scope{on.enter(nullptr)};
    on.kernels().load_all();
    jit::Triton::of(on).load_bundle();
  });
}

int32_t preferred_slot(int32_t ordinal, const clover_sizes* sizes) {
  int32_t slot = CLOVER_ANY_SLOT;
  guarded(nullptr, 0, [&] { slot = jit::Triton::of(device(ordinal)).tuned().slot(*sizes); });
  return slot;
}

void set_python(const char* path) {
  jit::set_python(path == nullptr ? "" : path);
}

std::string driver_version() {
  int version = 0;
  check("DriverGetVersion", Driver::table().DriverGetVersion(&version));
  return Driver::kCuda ? "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10)
                       : "HIP " + std::to_string(version);
}

// What the plugin holds, and for whom it can compile more.
std::string device_code_text() {
  const CodeObjects& objects = code_objects();
  std::string text = "device code: " + std::to_string(objects.unit_count) + " code objects by " + objects.toolchain +
                     ", for " + objects.targets;
  if constexpr (!Driver::kCuda) text += "\ncompiler for other architectures: " + RuntimeCompiler::describe();
  return text;
}

const char* describe() {
  static thread_local std::string text;
  char message[512] = "";
  const int32_t status = guarded(message, sizeof(message), [&] {
    const auto& all = devices();
    text = "driver: " + driver_version() + ", " + Driver::path() + "\n";
    text += device_code_text() + "\n";
    for (const auto& one : all)
      text += device_name(one->ordinal()) + ": " + one->label() + ", architecture " + one->architecture() +
              one->features() + ", " + std::to_string(one->machine().multiprocessors) + " multiprocessors, " +
              std::to_string(one->kernels().loaded_modules()) + " code objects loaded, " +
              jit::Triton::of(*one).describe() + "\n";
  });
  if (status != CLOVER_OK) text = "driver: " + std::string(message) + "\n";
  return text.c_str();
}

}  // namespace

const clover_plugin* plugin() {
  static const clover_plugin table = [] {
    clover_plugin entry{};
    entry.struct_size = sizeof(entry);
    entry.abi_version = CLOVER_ABI_VERSION;
    entry.device_type = backend::device_type;
    entry.name = backend::name;
    entry.version = backend::version;
    entry.providers = backend::providers;
    entry.provider_count = backend::provider_count;
    entry.device_count = device_count;
    entry.enter_device = enter_device;
    entry.leave_device = leave_device;
    entry.copy_to_host = copy_to_host;
    entry.warmup = warmup;
    entry.describe = describe;
    entry.preferred_slot = preferred_slot;
    entry.set_python = set_python;
    return entry;
  }();
  return &table;
}

}  // namespace clover::device

int32_t clover_plugin_set_driver(const clover::driver::Table* table, char* message, uint64_t capacity) {
  using namespace clover::device;
  return guarded(message, capacity, [&] {
    if (table == nullptr) throw Failure(CLOVER_INVALID_ARGUMENT, "table is null");
    if (loaded_module_count() != 0)
      throw Failure(CLOVER_INVALID_ARGUMENT, "kernels are loaded already; set the driver before the first operator");
    if (!Driver::Open().empty()) throw Failure(CLOVER_DRIVER_ERROR, Driver::Open());
    Driver::Replace(*table);
  });
}
