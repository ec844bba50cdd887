#include "kernels.hpp"

#include <string>

#include "capture.hpp"

namespace clover::device {
namespace {

std::atomic<size_t> all_loaded_modules{0};

}  // namespace

size_t loaded_module_count() {
  return all_loaded_modules.load();
}

void count_loaded_module() {
  ++all_loaded_modules;
}

Kernels::Kernels(const Device& device) : device_(device) {
  const CodeObjects& objects = code_objects();
  for (size_t u = 0; u < objects.unit_count; ++u) {
    const Unit& unit = objects.units[u];
    const Image* image = choose_image(unit, device.architecture());
    // A unit that has nothing for this device still lends its kernels' names, so that asking for one says why.
    const Image& names = image != nullptr ? *image : unit.images[0];
    modules_.push_back(std::make_unique<Module>());
    Module* module = modules_.back().get();
    module->unit = &unit;
    module->image = image;
    for (size_t k = 0; k < names.kernel_count; ++k) {
      Entry& entry = entries_[names.kernels[k]];
      if (entry.module != nullptr && entry.module->image != nullptr) continue;
      entry.module = module;
    }
  }
}

const Kernel& Kernels::find(const char* name, driver::Stream stream) {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    throw Failure(CLOVER_COMPILE_ERROR,
                  "kernel " + std::string(name) +
                      " is not among the plugin's code objects; its device code and its library are "
                      "not of one build: reinstall the plugin");
  Entry& entry = found->second;
  if (const Kernel* kernel = entry.kernel.load(std::memory_order_acquire)) return *kernel;

  if (entry.module->image == nullptr && !RuntimeCompiler::serves(*entry.module->unit))
    throw Failure(CLOVER_COMPILE_ERROR, "kernel " + std::string(name) + " was not compiled for " +
                                            device_name(device_.ordinal()) + " (" + device_.label() +
                                            ", architecture " + device_.architecture() +
                                            "); the plugin holds: " + code_objects().architectures);
  refuse_in_capture(device_, stream, name, "call clover::warmup (clover_ops.warmup in Python)");
  load(entry.module);
  return *entry.kernel.load(std::memory_order_acquire);
}

void Kernels::load_all() {
  for (const auto& module : modules_)
    if (module->image != nullptr || RuntimeCompiler::serves(*module->unit)) load(module.get());
}

// A failure leaves the module as it was, so that a later call tries again.
void Kernels::load(Module* module) {
  const std::lock_guard<std::mutex> lock(module->mutex);
  if (module->loaded) return;
  // Compiled here, a unit has the kernels that it has for any other architecture.
  const Image& image = module->image != nullptr ? *module->image : module->unit->images[0];
  check_warp_size(image, *module->unit);
  const void* code = code_of(module);
  const RelaxedCapture relaxed;
  driver::Module loaded = nullptr;
  check("ModuleLoadData", Driver::ModuleLoadData(&loaded, code),
        "for the code object " + std::string(module->unit->name) + " (" +
            (module->image != nullptr ? image.architecture : device_.architecture() + ", compiled here") + ") on " +
            device_name(device_.ordinal()));
  std::vector<Kernel> kernels;
  kernels.reserve(image.kernel_count);
  try {
    for (size_t k = 0; k < image.kernel_count; ++k) kernels.push_back(look_up(loaded, image, k));
  } catch (...) {
    Driver::ModuleUnload(loaded);
    throw;
  }
  module->kernels = std::move(kernels);
  module->loaded = true;
  for (size_t k = 0; k < image.kernel_count; ++k) {
    Entry& entry = entries_.at(image.kernels[k]);
    if (entry.module == module) entry.kernel.store(&module->kernels[k], std::memory_order_release);
  }
  ++loaded_modules_;
  count_loaded_module();
}

const void* Kernels::code_of(Module* module) const {
  if (module->image != nullptr) return module->image->data;
  if constexpr (!Driver::kCuda) {
    if (module->compiled.empty())
      module->compiled = RuntimeCompiler::compile(*module->unit, device_.architecture(), device_.features());
  }
  return module->compiled.data();
}

// Lane masks, exchanges and launch geometry all follow from it: code for another size would compute garbage.
void Kernels::check_warp_size(const Image& image, const Unit& unit) const {
  if (image.warp_size == device_.machine().warp_size) return;
  throw Failure(CLOVER_COMPILE_ERROR, "the code object " + std::string(unit.name) + " (" + image.architecture +
                                          ") is for warps of " + std::to_string(image.warp_size) + " lanes, but " +
                                          device_name(device_.ordinal()) + " (" + device_.label() + ") has " +
                                          std::to_string(device_.machine().warp_size));
}

// Everything that a launch checks, and the opt-in to all the shared memory that the device has, is asked for once.
Kernel Kernels::look_up(driver::Module loaded, const Image& image, size_t index) const {
  const char* name = image.kernels[index];
  const std::string which = "for kernel " + std::string(name);
  Kernel kernel;
  check("ModuleGetFunction", Driver::ModuleGetFunction(&kernel.function, loaded, name), which);
  int fixed = 0;
  check("FuncGetAttribute", Driver::FuncGetAttribute(&fixed, driver::kFuncAttributeSharedSizeBytes, kernel.function),
        which);
  kernel.shared_bytes = device_.machine().shared_bytes_optin - fixed;
  check("FuncSetAttribute",
        Driver::FuncSetAttribute(kernel.function, driver::kFuncAttributeMaxDynamicSharedSizeBytes,
                                 static_cast<int>(kernel.shared_bytes)),
        which);
  int threads = 0;
  if (Driver::FuncGetAttribute(&threads, driver::kFuncAttributeMaxThreadsPerBlock, kernel.function) == driver::kSuccess)
    kernel.threads_per_block = threads;
  if (image.param_bytes != nullptr) kernel.param_bytes = image.param_bytes[index];
  size_t offset = 0, bytes = 0;
  if (Driver::table().FuncGetParamInfo != nullptr &&
      Driver::table().FuncGetParamInfo(kernel.function, 0, &offset, &bytes) == driver::kSuccess)
    kernel.param_bytes = bytes;
  return kernel;
}

}  // namespace clover::device
