#include "triton.hpp"

#include <cstdio>
#include <sstream>

#include "common/device/capture.hpp"
#include "common/device/kernels.hpp"
#include "common/device/own_folder.hpp"
#include "compile_service.hpp"

namespace clover::jit {
namespace {

using device::check;
using device::device_name;
using device::Driver;
using device::Failure;

std::string target_text(const std::string& architecture, int warp_size) {
  return (Driver::kCuda ? "cuda:" : "hip:") + architecture + ":" + std::to_string(warp_size);
}

// A binary of compute capability 8.0 runs on 8.6 and 8.9 too; from 9.0 on Triton compiles for exactly one capability
// (sm_90a). A HIP code object that names no features runs with any.
std::vector<std::pair<std::string, std::string>> targets_of(const device::Device& device) {
  const int warp_size = device.machine().warp_size;
  std::vector<std::pair<std::string, std::string>> targets;
  if constexpr (Driver::kCuda) {
    const int capability = device.machine().compute_capability;
    const int lowest = capability / 10 == 8 ? 80 : capability;
    for (int one = capability; one >= lowest; --one)
      targets.emplace_back(target_text(std::to_string(one), warp_size), "");
  } else {
    const std::string target = target_text(device.architecture(), warp_size);
    if (!device.features().empty()) targets.emplace_back(target, device.features().substr(1));
    targets.emplace_back(target, "");
  }
  return targets;
}

// The sizes that the driver found in the binary, where it tells, are those that a launch will pass.
void check_parameters(const Artifact& artifact, driver::Function function, const std::string& where) {
  if (Driver::table().FuncGetParamInfo == nullptr) return;
  std::vector<size_t> expected;
  std::istringstream types(artifact.text("arguments"));
  for (std::string type; types >> type;) expected.push_back(type == "i32" || type == "fp32" ? 4 : 8);
  expected.insert(expected.end(), 2, sizeof(void*));  // scratch
  // Not asked for one more, which a memory checker would call an error.
  for (size_t i = 0; i < expected.size(); ++i) {
    size_t offset = 0, bytes = 0;
    const bool there = Driver::table().FuncGetParamInfo(function, i, &offset, &bytes) == driver::kSuccess;
    if (there && bytes == expected[i]) continue;
    if (i == 0 && !there) return;
    throw Failure(CLOVER_COMPILE_ERROR, where + ": the binary's argument " + std::to_string(i) + " has " +
                                            (there ? std::to_string(bytes) : "no") + " bytes, its header says " +
                                            std::to_string(expected[i]));
  }
}

}  // namespace

Triton& Triton::of(const device::Device& device) {
  struct Slot {
    std::once_flag once;
    std::unique_ptr<Triton> triton;
  };
  // Never destroyed, as the devices are not.
  static auto* slots = new std::vector<Slot>(device::devices().size());
  Slot& slot = (*slots)[device.ordinal()];
  std::call_once(slot.once, [&] { slot.triton = std::make_unique<Triton>(device); });
  return *slot.triton;
}

Triton::Triton(const device::Device& device)
    : device_(device), tuned_(TunedTable::load(device.label(), device.architecture())), targets_(targets_of(device)) {}

size_t Triton::KeyHash::operator()(const Launch::Key& key) const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15, hash ^= hash >> 29; };
  mix(reinterpret_cast<uintptr_t>(key.row));
  mix(reinterpret_cast<uintptr_t>(key.config));
  mix(key.divisible);
  mix(key.one);
  for (const int64_t value : key.constants) mix(static_cast<uint64_t>(value));
  return hash;
}

const Triton::Loaded* Triton::find_loaded(const Launch& launch) {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  const auto found = by_key_.find(launch.key());
  return found == by_key_.end() ? nullptr : found->second;
}

std::vector<Request> Triton::requests(const Launch& launch) const {
  std::vector<Request> all;
  for (const auto& [target, features] : targets_) all.push_back(launch.request(target, features));
  return all;
}

// The bundle is loaded by requests' digests before any launch is known.
const Triton::Loaded* Triton::known_by_request(const Launch& launch, const std::vector<Request>& requests) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  for (const Request& request : requests) {
    const auto found = by_request_.find(request.digest());
    if (found != by_request_.end()) return by_key_[launch.key()] = found->second.get();
  }
  return nullptr;
}

std::string Triton::why_not(const Launch& launch) {
  if (mode() == Mode::kOn || find_loaded(launch) != nullptr) return "";
  return jit::why_not(requests(launch));
}

void Triton::prepare(const Launch& launch, driver::Stream stream) {
  if (find_loaded(launch) != nullptr) return;
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto failed = failures_.find(launch.key());
    if (failed != failures_.end()) throw Failure(CLOVER_COMPILE_ERROR, failed->second);
  }
  if (device::is_capturing(stream, launch.row().name)) return;
  try {
    make(launch);
  } catch (const Failure& failure) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    failures_[launch.key()] = failure.what();
    throw;
  }
}

const Triton::Loaded& Triton::find(const Launch& launch, driver::Stream stream) {
  if (const Loaded* loaded = find_loaded(launch)) return *loaded;
  if (const Loaded* loaded = known_by_request(launch, requests(launch))) return *loaded;
  device::refuse_in_capture(device_, stream, launch.row().name,
                            "run this call once, or call clover::warmup (clover_ops.warmup in Python) where the bundle "
                            "has it,");
  return make(launch);
}

const Triton::Loaded& Triton::make(const Launch& launch) {
  const std::lock_guard<std::mutex> lock(making_);
  const std::vector<Request> asked = requests(launch);
  if (const Loaded* loaded = known_by_request(launch, asked)) return *loaded;  // by another thread, in the meantime
  const Found found = obtain(asked);
  auto loaded = std::make_unique<Loaded>(load(found.artifact, "kernel " + launch.row().name));
  if (loaded->scratch_bytes > static_cast<uint64_t>(launch.row().scratch_bytes))
    throw Failure(CLOVER_COMPILE_ERROR, "kernel " + launch.row().name + " asks for " +
                                            std::to_string(loaded->scratch_bytes) +
                                            " bytes of scratch memory for each program; kernels.toml sets aside " +
                                            std::to_string(launch.row().scratch_bytes));
  const std::unique_lock<std::shared_mutex> writing(mutex_);
  Loaded& kept = *(by_request_[found.request] = std::move(loaded));
  by_key_[launch.key()] = &kept;
  failures_.erase(launch.key());
  return kept;
}

// What the driver would find out later, or never, is refused before the code is given to it.
Triton::Loaded Triton::load(const Artifact& artifact, const std::string& where) const {
  const auto refuse = [&](const std::string& what) { throw Failure(CLOVER_COMPILE_ERROR, where + ": " + what); };
  const uint64_t warp_size = artifact.number("warp_size"), threads = artifact.number("num_warps") * warp_size;
  const uint64_t shared = artifact.number("shared_bytes");
  if (warp_size != static_cast<uint64_t>(device_.machine().warp_size))
    refuse("it is for warps of " + artifact.text("warp_size") + " lanes, but " + device_name(device_.ordinal()) + " (" +
           device_.label() + ") has " + std::to_string(device_.machine().warp_size));
  if (threads == 0 || threads > static_cast<uint64_t>(device_.limits().threads_per_block))
    refuse("a block of " + std::to_string(threads) + " threads; " + device_name(device_.ordinal()) + " takes up to " +
           std::to_string(device_.limits().threads_per_block));
  if (shared > static_cast<uint64_t>(device_.machine().shared_bytes_optin))
    refuse(std::to_string(shared) + " bytes of shared memory; " + device_name(device_.ordinal()) + " has " +
           std::to_string(device_.machine().shared_bytes_optin));
  if (artifact.number("profile_scratch_bytes") != 0)
    refuse("it was compiled for profiling; no memory is set aside for that");

  const std::string which = "for " + where + " (" + artifact.text("target") + ") on " + device_name(device_.ordinal());
  const device::RelaxedCapture relaxed;
  driver::Module loaded = nullptr;
  check("ModuleLoadData", Driver::ModuleLoadData(&loaded, artifact.binary.data()), which);
  Loaded kernel;
  try {
    check("ModuleGetFunction", Driver::ModuleGetFunction(&kernel.function, loaded, artifact.text("symbol").c_str()),
          which);
    check("FuncSetAttribute",
          Driver::FuncSetAttribute(kernel.function, driver::kFuncAttributeMaxDynamicSharedSizeBytes,
                                   static_cast<int>(shared)),
          which);
    check_parameters(artifact, kernel.function, where);
    int most = 0;
    if (Driver::FuncGetAttribute(&most, driver::kFuncAttributeMaxThreadsPerBlock, kernel.function) ==
            driver::kSuccess &&
        most > 0 && threads > static_cast<uint64_t>(most))
      refuse("a block of " + std::to_string(threads) + " threads; its registers allow " + std::to_string(most));
  } catch (...) {
    Driver::ModuleUnload(loaded);
    throw;
  }
  kernel.threads = static_cast<unsigned>(threads);
  kernel.shared_bytes = static_cast<unsigned>(shared);
  kernel.scratch_bytes = artifact.number("global_scratch_bytes");
  device::count_loaded_module();
  return kernel;
}

void Triton::check_launch(const Launch& launch, const Loaded& loaded) const {
  for (int axis = 0; axis < 3; ++axis)
    if (launch.grid[axis] > static_cast<uint32_t>(device_.limits().grid[axis]))
      throw Failure(CLOVER_INTERNAL, "kernel " + launch.row().name + ": a grid of " +
                                         std::to_string(launch.grid[axis]) + " programs on axis " +
                                         std::to_string(axis) + "; it takes up to " +
                                         std::to_string(device_.limits().grid[axis]));
  if (loaded.scratch_bytes > 0 && launch.scratch == nullptr)
    throw Failure(CLOVER_INTERNAL, "kernel " + launch.row().name + ": no scratch memory is set aside for it");
}

void Triton::run(const Launch* launches, int count, driver::Stream stream) {
  constexpr int kMost = 8;
  const Loaded* loaded[kMost];
  if (count > kMost) throw Failure(CLOVER_INTERNAL, "a plan of " + std::to_string(count) + " launches");
  for (int i = 0; i < count; ++i) {
    loaded[i] = &find(launches[i], stream);
    check_launch(launches[i], *loaded[i]);
  }
  for (int i = 0; i < count; ++i) {
    if (launches[i].programs() == 0) continue;  // nothing to do
    const void* addresses[Launch::kMaxArguments + 2];
    launches[i].arguments(addresses);
    const uint32_t (&grid)[3] = launches[i].grid;
    const driver::Status status =
        Driver::LaunchKernel(loaded[i]->function, grid[0], grid[1], grid[2], loaded[i]->threads, 1, 1,
                             loaded[i]->shared_bytes, stream, const_cast<void**>(addresses), nullptr);
    if (status != driver::kSuccess) device::fail("LaunchKernel", status, "for kernel " + launches[i].row().name);
  }
}

void Triton::load_bundle() {
  const Mode allowed = mode();
  if (allowed == Mode::kOff) return;
  const std::lock_guard<std::mutex> making(making_);
  for (const std::string& path : bundle_files()) {
    try {
      const Artifact artifact = parse_artifact(device::read_file(path), path);
      bool ours = false;
      for (const auto& [target, features] : targets_)
        ours = ours || (artifact.text("target") == target && artifact.text("features") == features);
      if (!ours || by_request_.count(artifact.text("request")) != 0) continue;
      auto loaded = std::make_unique<Loaded>(load(artifact, path));
      const std::unique_lock<std::shared_mutex> writing(mutex_);
      by_request_[artifact.text("request")] = std::move(loaded);
    } catch (const ArtifactFailure& failure) {
      if (allowed == Mode::kBundle) throw;
      std::fprintf(stderr, "clover-ops: %s; the kernel will be compiled when it is called\n", failure.what());
    }
  }
}

std::string Triton::describe() const {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  return std::to_string(by_request_.size()) + " Triton kernels loaded, tuned table: " + tuned_.origin();
}

}  // namespace clover::jit
