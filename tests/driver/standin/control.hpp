// What the stand-in drivers share: counting, failing on demand, and a log of launches. A test talks to them through the
// exported standin_* functions. Compiled with IDLE nothing is counted and no launch looked at, so that what is timed on
// the stand-in is its caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace standin {

struct Control {
  std::mutex mutex;
  std::map<std::string, int> calls;
  std::map<std::string, int> failures;
  std::string launches;  // JSON objects, one a line
};

inline Control& control() {
  static Control* all = [] {
    auto* made = new Control;
    // STANDIN_FAIL=cuInit:802,cuDeviceGetCount:999
    const char* text = std::getenv("STANDIN_FAIL");
    std::istringstream items(text == nullptr ? "" : text);
    for (std::string item; std::getline(items, item, ',');) {
      const size_t colon = item.find(':');
      made->failures[item.substr(0, colon)] = std::atoi(item.substr(colon + 1).c_str());
    }
    return made;
  }();
  return *all;
}

// Counts a call and returns the failure that a test asked for, or 0.
inline int enter(const char* call) {
  Control& c = control();
  const std::lock_guard<std::mutex> lock(c.mutex);
  ++c.calls[call];
  const auto failure = c.failures.find(call);
  return failure == c.failures.end() ? 0 : failure->second;
}

#if defined(IDLE)
#define ENTER() static_cast<void>(0)
#else
#define ENTER() \
  if (const int failure = standin::enter(__func__)) return failure
#endif

// STANDIN_DEVICES=90,80: one item per device; the default is one device.
inline std::vector<std::string> devices(const char* otherwise) {
  const char* text = std::getenv("STANDIN_DEVICES");
  std::istringstream items(text == nullptr ? otherwise : text);
  std::vector<std::string> all;
  for (std::string item; std::getline(items, item, ',');) all.push_back(item);
  return all;
}

inline void log_launch(const char* kernel, int device, const void* stream, const unsigned (&grid)[3],
                       const unsigned (&block)[3], unsigned shared, const void* params, size_t param_bytes) {
  std::ostringstream line;
  line << "{\"kernel\": \"" << kernel << "\", \"device\": " << device
       << ", \"stream\": " << reinterpret_cast<uintptr_t>(stream) << ", \"grid\": [" << grid[0] << ", " << grid[1]
       << ", " << grid[2] << "], \"block\": [" << block[0] << ", " << block[1] << ", " << block[2]
       << "], \"shared\": " << shared << ", \"params\": \"";
  for (size_t i = 0; i < param_bytes; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof(byte), "%02x", static_cast<const unsigned char*>(params)[i]);
    line << byte;
  }
  line << "\"}\n";
  const std::lock_guard<std::mutex> lock(control().mutex);
  control().launches += line.str();
}

}  // namespace standin

EXPORT void standin_fail(const char* call, int status) {
  const std::lock_guard<std::mutex> lock(standin::control().mutex);
  if (status == 0)
    standin::control().failures.erase(call);
  else
    standin::control().failures[call] = status;
}

EXPORT int standin_calls(const char* call) {
  const std::lock_guard<std::mutex> lock(standin::control().mutex);
  return standin::control().calls[call];
}

EXPORT const char* standin_launches() {
  static thread_local std::string copy;
  const std::lock_guard<std::mutex> lock(standin::control().mutex);
  copy = standin::control().launches;
  return copy.c_str();
}

EXPORT void standin_forget() {
  const std::lock_guard<std::mutex> lock(standin::control().mutex);
  standin::control().calls.clear();
  standin::control().launches.clear();
}
