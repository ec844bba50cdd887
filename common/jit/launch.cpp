#include "launch.hpp"

#include <cstring>

#include "common/device/failure.hpp"
#include "tuned.hpp"

namespace clover::jit {
namespace {

[[noreturn]] void bug(const KernelRow& row, const std::string& what) {
  throw device::Failure(CLOVER_INTERNAL, "kernel " + row.name + ": " + what);
}

}  // namespace

void Launch::start(const char* kernel, const char* data) {
  key_.row = &kernel_row(kernel);
  key_.data = data;
  if (row().parameters.size() > kMaxArguments || row().constants.size() > kMaxConstants)
    bug(row(), "has more parameters than a launch holds");
}

int Launch::constant_index(std::string_view name) const {
  for (size_t i = 0; i < row().constants.size(); ++i)
    if (row().constants[i] == name) return static_cast<int>(i);
  bug(row(), "has no constexpr " + std::string(name));
}

Launch& Launch::set(std::string_view constant, Constant value) {
  const int index = constant_index(constant);
  key_.constants[index] = value.value;
  set_ |= 1u << index;
  boolean_ = (boolean_ & ~(1u << index)) | static_cast<uint32_t>(value.boolean) << index;
  return *this;
}

void Launch::configure(const TunedTable& tuned) {
  const auto value_of = [&](const std::string& name, Constant* value) {
    for (size_t i = 0; i < row().constants.size(); ++i) {
      if (row().constants[i] != name || !is_set(static_cast<int>(i))) continue;
      *value = {key_.constants[i], (boolean_ >> i & 1) != 0};
      return true;
    }
    return false;
  };
  const auto agrees = [&](const Config& config) {
    for (const auto& [name, wanted] : config.constants)
      if (Constant have; value_of(name, &have) && !(have == wanted)) return false;
    return true;
  };
  const Config* config = tuned.config(row().name, value_of);
  if (config != nullptr && !agrees(*config)) config = nullptr;
  for (size_t i = 0; config == nullptr && i < row().configs.size(); ++i)
    if (agrees(row().configs[i])) config = &row().configs[i];
  if (config == nullptr) bug(row(), "no configuration agrees with what the provider needs");
  for (const auto& [name, value] : config->constants) set(name, value);
  key_.config = config;
}

int64_t Launch::operator[](const char* constant) const {
  const int index = constant_index(constant);
  if (!is_set(index)) bug(row(), std::string("constexpr ") + constant + " is not set yet");
  return key_.constants[index];
}

Launch& Launch::take(char kind, const void* value, size_t bytes) {
  if (count_ == static_cast<int>(row().parameters.size())) bug(row(), "is given too many arguments");
  const Parameter& parameter = row().parameters[count_];
  if (parameter.kind != kind) bug(row(), "argument " + parameter.name + " is a " + parameter.type);
  std::memcpy(&values_[count_], value, bytes);
  if (parameter.specialised) {
    if (values_[count_] % 16 == 0) key_.divisible |= uint64_t{1} << count_;
    if (kind == 'l' && values_[count_] == 1) key_.one |= uint64_t{1} << count_;
  }
  ++count_;
  return *this;
}

Launch& Launch::pass(const void* pointer) {
  return take('p', &pointer, sizeof(pointer));
}
Launch& Launch::pass(int64_t value) {
  return take('l', &value, sizeof(value));
}
Launch& Launch::pass(int32_t value) {
  return take('i', &value, sizeof(value));
}
Launch& Launch::pass(float value) {
  return take('f', &value, sizeof(value));
}

Request Launch::request(const std::string& target, const std::string& features) const {
  if (count_ != static_cast<int>(row().parameters.size()))
    bug(row(), "argument " + row().parameters[count_].name + " is not given");
  Request request;
  request.kernel = row().name;
  request.source = row().source;
  request.target = target;
  request.features = features;
  for (int i = 0; i < count_; ++i) {
    const Parameter& parameter = row().parameters[i];
    const char* special = (key_.one >> i & 1) != 0 ? "1" : (key_.divisible >> i & 1) != 0 ? "16" : "";
    request.arguments.push_back(
        {parameter.name, parameter.type == "*x" ? "*" + std::string(key_.data) : parameter.type, special});
  }
  for (size_t i = 0; i < row().constants.size(); ++i) {
    if (!is_set(static_cast<int>(i))) bug(row(), "constexpr " + row().constants[i] + " is not set");
    const Constant value{key_.constants[i], (boolean_ >> i & 1) != 0};
    request.constexprs.emplace_back(row().constants[i], value.text());
  }
  request.num_warps = key_.config->num_warps;
  request.num_stages = key_.config->num_stages;
  request.options = key_.config->options;
  return request;
}

int Launch::arguments(const void* (&addresses)[kMaxArguments + 2]) const {
  int passed = 0;
  for (int i = 0; i < count_; ++i)
    if ((key_.one >> i & 1) == 0) addresses[passed++] = &values_[i];
  addresses[passed++] = &scratch;      // global scratch
  addresses[passed++] = &no_scratch_;  // for profiling
  return passed;
}

}  // namespace clover::jit
