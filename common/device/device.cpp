#include "device.hpp"

#include "kernels.hpp"

namespace clover::device {
namespace {

// A stream handle that names no stream of its own: the null stream, and CUDA's and HIP's legacy and per-thread ones.
bool is_default_stream(driver::Stream stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2;
}

// Until a device is entered there is nothing to restore; afterwards a token says what to.
void* token_of(int device) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1);
}

std::vector<std::unique_ptr<Device>> find_devices() {
  if (!Driver::Open().empty()) throw Failure(CLOVER_DRIVER_ERROR, Driver::Open());
  check("Init", Driver::table().Init(0));
  int count = 0;
  check("DeviceGetCount", Driver::table().DeviceGetCount(&count));
  std::vector<std::unique_ptr<Device>> found;
  for (int ordinal = 0; ordinal < count; ++ordinal) found.push_back(std::make_unique<Device>(ordinal));
  return found;
}

}  // namespace

const std::vector<std::unique_ptr<Device>>& devices() {
  // Never destroyed: calls may come from other threads until the very end.
  static const auto* all = new std::vector<std::unique_ptr<Device>>(find_devices());
  return *all;
}

Device& device(int ordinal) {
  const auto& all = devices();
  if (ordinal < 0 || ordinal >= static_cast<int>(all.size()))
    throw Failure(CLOVER_INVALID_ARGUMENT, device_name(ordinal) + " does not exist: the driver shows " +
                                               std::to_string(all.size()) + " device(s)");
  return *all[ordinal];
}

Device::Device(int ordinal) : ordinal_(ordinal) {
  const driver::Table& table = Driver::table();
  check("DeviceGet", table.DeviceGet(&handle_, ordinal), "for " + device_name(ordinal));
  char text[256] = "";
  check("DeviceGetName", table.DeviceGetName(text, sizeof(text), handle_), "for " + device_name(ordinal));
  label_ = text;
  if (!Driver::DetectNumbering(handle_))
    throw Failure(CLOVER_DRIVER_ERROR,
                  "the driver at " + Driver::path() +
                      " numbers device attributes in a way that this plugin does not know; install "
                      "a supported one");

  machine_.warp_size = attribute(driver::Attribute::kWarpSize, "warp size");
  machine_.multiprocessors = attribute(driver::Attribute::kMultiprocessorCount, "multiprocessors");
  limits_.threads_per_block = attribute(driver::Attribute::kMaxThreadsPerBlock, "threads per block");
  limits_.grid[0] = attribute(driver::Attribute::kMaxGridDimX, "grid size");
  limits_.grid[1] = attribute(driver::Attribute::kMaxGridDimY, "grid size");
  limits_.grid[2] = attribute(driver::Attribute::kMaxGridDimZ, "grid size");
  if (Driver::kCuda) {
    machine_.compute_capability = 10 * attribute(driver::Attribute::kComputeCapabilityMajor, "compute capability") +
                                  attribute(driver::Attribute::kComputeCapabilityMinor, "compute capability");
    machine_.shared_bytes_optin = attribute(driver::Attribute::kMaxSharedMemoryPerBlockOptin, "shared memory");
    architecture_ = std::to_string(machine_.compute_capability);
  } else {
    machine_.shared_bytes_optin = attribute(driver::Attribute::kMaxSharedMemoryPerBlock, "shared memory");
    std::string name;
    check("GetDeviceProperties", Driver::DeviceGetArchitecture(&name, handle_), "to find the architecture's name");
    const size_t colon = name.find(':');
    architecture_ = name.substr(0, colon);
    features_ = colon == std::string::npos ? "" : name.substr(colon);
  }
  kernels_ = std::make_unique<Kernels>(*this);
}

Device::~Device() = default;

int Device::attribute(driver::Attribute attribute, const char* name) const {
  int value = 0;
  check("DeviceGetAttribute", Driver::DeviceGetAttribute(&value, attribute, handle_),
        "for the " + std::string(name) + " of " + device_name(ordinal_));
  return value;
}

// The primary context is shared with the frameworks in the process and, like theirs, kept until the process ends.
driver::Context Device::primary_context() {
  if (const driver::Context context = context_.load(std::memory_order_acquire)) return context;
  const std::lock_guard<std::mutex> lock(retaining_);
  driver::Context context = context_.load(std::memory_order_relaxed);
  if (context != nullptr) return context;
  check("DevicePrimaryCtxRetain", Driver::table().DevicePrimaryCtxRetain(&context, handle_),
        "for " + device_name(ordinal_));
  context_.store(context, std::memory_order_release);
  return context;
}

void* Device::enter(driver::Stream stream) {
  const driver::Table& table = Driver::table();
  void* token = nullptr;
  if constexpr (Driver::kCuda) {
    const driver::Context primary = primary_context();
    driver::Context current = nullptr;
    check("CtxGetCurrent", table.CtxGetCurrent(&current));
    if (current != primary) {
      check("CtxPushCurrent", table.CtxPushCurrent(primary), "for " + device_name(ordinal_));
      token = token_of(0);
    }
  } else {
    int current = 0;
    check("GetDevice", table.GetDevice(&current));
    if (current != ordinal_) {
      check("SetDevice", table.SetDevice(ordinal_), "for " + device_name(ordinal_));
      token = token_of(current);
    }
  }
  try {
    check_stream(stream);
  } catch (...) {
    leave(token);
    throw;
  }
  return token;
}

void Device::leave(void* token) {
  if (token == nullptr) return;
  if constexpr (Driver::kCuda) {
    driver::Context popped = nullptr;
    Driver::table().CtxPopCurrent(&popped);
  } else {
    Driver::table().SetDevice(static_cast<int>(reinterpret_cast<uintptr_t>(token) - 1));
  }
}

void Device::check_stream(driver::Stream stream) const {
  if (is_default_stream(stream)) return;
  const driver::Table& table = Driver::table();
  const auto refuse = [&](const std::string& where) {
    throw Failure(CLOVER_INVALID_ARGUMENT, "stream belongs to " + where + " but the tensors are on " +
                                               device_name(ordinal_) + "; stream and tensors must share one device");
  };
  if constexpr (Driver::kCuda) {
    driver::Context context = nullptr;
    check("StreamGetCtx", table.StreamGetCtx(stream, &context), "for the call's stream");
    if (context == context_.load(std::memory_order_relaxed)) return;
    int owner = -1;
    check("CtxPushCurrent", table.CtxPushCurrent(context), "for the call's stream");
    const driver::Status status = table.CtxGetDevice(&owner);
    driver::Context popped = nullptr;
    table.CtxPopCurrent(&popped);
    check("CtxGetDevice", status, "for the call's stream");
    refuse(owner == handle_ ? "another context of " + device_name(ordinal_) + " than its primary one"
                            : device_name(owner));
  } else {
    // Some versions succeed without an answer.
    int owner = -1;
    if (table.StreamGetDevice == nullptr) return;
    check("StreamGetDevice", table.StreamGetDevice(stream, &owner), "for the call's stream");
    if (owner >= 0 && owner != ordinal_) refuse(device_name(owner));
  }
}

}  // namespace clover::device
