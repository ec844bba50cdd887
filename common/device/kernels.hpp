// The kernels of one device: each code object is loaded when a kernel of it is first asked for, once, from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "code_objects.hpp"
#include "device.hpp"
#include "runtime_compiler.hpp"

namespace clover::device {

struct Kernel {
  driver::Function function = nullptr;
  int threads_per_block = 0;  // the most that its registers allow; 0 when the driver does not say
  int64_t shared_bytes = 0;   // dynamic shared memory that it may ask for
  size_t param_bytes = 0;     // size of its one argument; 0 when the driver does not say
};

class Kernels {
 public:
  explicit Kernels(const Device& device);

  // The kernel of that name, loaded if need be; the device's context must be current. During the capture of `stream` a
  // kernel that is not loaded yet is refused.
  const Kernel& find(const char* name, driver::Stream stream);

  // Loads every code object that this device can run.
  void load_all();

  size_t loaded_modules() const { return loaded_modules_.load(); }

 private:
  struct Module {
    const Unit* unit;
    const Image* image;  // null when the plugin holds none for this device
    std::mutex mutex;
    std::string compiled;  // what stands in for it, compiled here
    bool loaded = false;
    std::vector<Kernel> kernels;  // in the order of image->kernels
  };
  struct Entry {
    Module* module = nullptr;
    std::atomic<const Kernel*> kernel{nullptr};
  };

  void load(Module* module);
  const void* code_of(Module* module) const;
  void check_warp_size(const Image& image, const Unit& unit) const;
  Kernel look_up(driver::Module loaded, const Image& image, size_t index) const;

  const Device& device_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::unordered_map<std::string_view, Entry> entries_;  // filled by the constructor; its keys never change
  std::atomic<size_t> loaded_modules_{0};
};

// Modules that were loaded on any device; a driver may be replaced only while there are none.
size_t loaded_module_count();
void count_loaded_module();

}  // namespace clover::device
