// The Triton kernels of one device: loaded once each, from any thread, and launched.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/device/device.hpp"
#include "launch.hpp"
#include "store.hpp"
#include "tuned.hpp"

namespace clover::jit {

class Triton {
 public:
  // Of a device of this plugin; made at the first call for it.
  static Triton& of(const device::Device& device);

  explicit Triton(const device::Device& device);

  const device::Device& device() const { return device_; }
  const TunedTable& tuned() const { return tuned_; }

  // Why the kernel of a launch cannot be had, as far as that is known without compiling it; empty when it may be.
  std::string why_not(const Launch& launch);

  // Loads the kernel, compiling it if need be. One that failed is not tried again, and fails with the same words. While
  // the stream is being captured it does nothing.
  void prepare(const Launch& launch, driver::Stream stream);

  // Puts launches on a stream, all or nothing as far as can be told beforehand. A kernel that is not loaded yet is
  // loaded first; while the stream is being captured it is refused.
  void run(const Launch* launches, int count, driver::Stream stream);

  // Loads what the bundle has for this device, so that it can be captured.
  void load_bundle();

  // For `doctor`, in one line.
  std::string describe() const;

 private:
  struct Loaded {
    driver::Function function = nullptr;
    unsigned threads = 0, shared_bytes = 0;
    uint64_t scratch_bytes = 0;  // for each program
  };
  struct KeyHash {
    size_t operator()(const Launch::Key& key) const;
  };

  const Loaded* find_loaded(const Launch& launch);
  const Loaded& find(const Launch& launch, driver::Stream stream);
  std::vector<Request> requests(const Launch& launch) const;
  const Loaded* known_by_request(const Launch& launch, const std::vector<Request>& requests);
  const Loaded& make(const Launch& launch);
  Loaded load(const Artifact& artifact, const std::string& where) const;
  void check_launch(const Launch& launch, const Loaded& loaded) const;

  const device::Device& device_;
  const TunedTable tuned_;
  // What its code may be compiled for, best first: target and features.
  std::vector<std::pair<std::string, std::string>> targets_;

  mutable std::shared_mutex mutex_;  // over the three maps
  std::unordered_map<Launch::Key, const Loaded*, KeyHash> by_key_;
  std::unordered_map<std::string, std::unique_ptr<Loaded>> by_request_;
  std::unordered_map<Launch::Key, std::string, KeyHash> failures_;
  std::mutex making_;  // one kernel is made at a time
};

}  // namespace clover::jit
