// One launch of a Triton kernel, as a provider plans it: arguments, constexprs, grid. What is known of an argument's
// value (divisible by 16, equal to 1) makes the kernel that is asked for, by one rule: pointers to floats and 64-bit
// integers are specialised, nothing else is. `spec` of [[kernel.bundle]] in kernels.toml follows it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernel_table.hpp"
#include "request.hpp"

namespace clover::jit {

class TunedTable;

class Launch {
 public:
  static constexpr int kMaxArguments = 48;
  static constexpr int kMaxConstants = 16;

  // What makes two launches run the same binary.
  struct Key {
    const KernelRow* row = nullptr;
    const Config* config = nullptr;
    const char* data = nullptr;
    uint64_t divisible = 0, one = 0;  // a bit for each argument
    std::array<int64_t, kMaxConstants> constants{};

    bool operator==(const Key& other) const {
      return row == other.row && config == other.config && data == other.data && divisible == other.divisible &&
             one == other.one && constants == other.constants;
    }
  };

  // Before anything else. `data` is what `*x` points to: "bf16", "fp16" or "fp32".
  void start(const char* kernel, const char* data);

  Launch& set(std::string_view constant, int64_t value) { return set(constant, Constant{value, false}); }
  Launch& set_flag(std::string_view constant, bool value) { return set(constant, Constant{value, true}); }

  // Takes the tuned configuration for the constants so far, else the first candidate that agrees with them.
  void configure(const TunedTable& tuned);

  // The value of a constant that is set, or that the configuration sets.
  int64_t operator[](const char* constant) const;

  // In the kernel's order. A pointer that is null goes as null.
  Launch& pass(const void* pointer);
  Launch& pass(int64_t value);
  Launch& pass(int32_t value);
  Launch& pass(float value);

  uint32_t grid[3] = {1, 1, 1};
  void* scratch = nullptr;

  const KernelRow& row() const { return *key_.row; }
  const Key& key() const { return key_; }
  uint64_t programs() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }

  // Throws unless every argument and constexpr was given.
  Request request(const std::string& target, const std::string& features) const;

  // Addresses of the values that are passed, those that equal 1 left out, then those of two pointers to scratch memory;
  // returns how many there are.
  int arguments(const void* (&addresses)[kMaxArguments + 2]) const;

 private:
  Launch& set(std::string_view constant, Constant value);
  Launch& take(char kind, const void* value, size_t bytes);
  int constant_index(std::string_view name) const;
  bool is_set(int index) const { return (set_ >> index & 1) != 0; }

  Key key_;
  uint32_t set_ = 0, boolean_ = 0;  // a bit for each constexpr
  int count_ = 0;
  uint64_t values_[kMaxArguments];  // of the arguments so far
  void* no_scratch_ = nullptr;
};

}  // namespace clover::jit
