#include "tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace operators {
namespace {

constexpr unsigned char kGuardByte = 0xC7;
constexpr unsigned char kUnwritten = 0xA5;

struct Format {
  int precision;  // bits of the significand, the implicit one included
  int quantum;    // exponent of the smallest subnormal
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return {8, -133};
    case DType::kFloat16:
      return {11, -24};
    default:
      return {24, -149};
  }
}

bool is_float(DType dtype) {
  return dtype == DType::kBFloat16 || dtype == DType::kFloat16 || dtype == DType::kFloat32;
}

int64_t item_of(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
    case DType::kFloat16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kInt64:
      return 8;
    default:
      return 1;
  }
}

uint16_t half_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (size >= 65520.0) return sign | 0x7C00;
  if (size < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::ldexp(size, 24));
  int exponent;
  const double fraction = std::frexp(size, &exponent);  // [0.5, 1)
  return sign | static_cast<uint16_t>((exponent + 14) << 10 | (static_cast<int>(std::ldexp(fraction, 11)) & 0x3FF));
}

double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = exponent == 0 ? bits & 0x3FF : (bits & 0x3FF) | 0x400;
  const double size = exponent == 31 ? HUGE_VAL : std::ldexp(fraction, std::max(exponent, 1) - 25);
  return bits & 0x8000 ? -size : size;
}

}  // namespace

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat32:
      return "float32";
    default:
      return "integer";
  }
}

double round_to(DType dtype, double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const Format format = format_of(dtype);
  int exponent;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - format.precision, format.quantum);
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape, Device device)
    : dtype_(dtype), shape_(std::move(shape)), device_(device), item_(item_of(dtype)), count_(1) {
  for (const int64_t size : shape_) count_ *= size;
  memory_.assign(static_cast<size_t>(count_ * item_ + 2 * kGuard), kGuardByte);
  std::fill(payload(), payload() + count_ * item_, kUnwritten);
  save();
}

std::vector<double> Tensor::all_before() const {
  std::vector<double> values(static_cast<size_t>(count_));
  for (int64_t i = 0; i < count_; ++i) values[static_cast<size_t>(i)] = before(i);
  return values;
}

void Tensor::set(int64_t i, double value) {
  unsigned char* bytes = payload() + i * item_;
  if (is_float(dtype_)) {
    const double rounded = round_to(dtype_, value);
    const float single = static_cast<float>(rounded);
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof(bits));
    const uint16_t upper = static_cast<uint16_t>(bits >> 16), half = half_bits(rounded);
    const void* source = &bits;
    if (dtype_ == DType::kBFloat16) source = &upper;
    if (dtype_ == DType::kFloat16) source = &half;
    std::memcpy(bytes, source, static_cast<size_t>(item_));
  } else {
    const int64_t integer = static_cast<int64_t>(value);
    std::memcpy(bytes, &integer, static_cast<size_t>(item_));  // little-endian, as every target is
  }
}

void Tensor::set_all(std::initializer_list<double> values) {
  int64_t i = 0;
  for (const double value : values) set(i++, value);
}

void Tensor::randomize(uint32_t seed, double low, double high) {
  std::mt19937 generator(seed);
  for (int64_t i = 0; i < count_; ++i) set(i, low + (high - low) * (generator() / 4294967296.0));
}

void Tensor::restore() {
  std::copy(saved_.begin(), saved_.end(), payload());
}

bool Tensor::unchanged_from(int64_t first) const {
  return std::equal(saved_.begin() + first * item_, saved_.end(), payload() + first * item_);
}

bool Tensor::guards_intact() const {
  const auto intact = [](unsigned char byte) { return byte == kGuardByte; };
  return std::all_of(memory_.begin(), memory_.begin() + kGuard, intact) &&
         std::all_of(memory_.end() - kGuard, memory_.end(), intact);
}

double Tensor::decode(const unsigned char* bytes) const {
  if (dtype_ == DType::kFloat16) {
    uint16_t half;
    std::memcpy(&half, bytes, sizeof(half));
    return half_value(half);
  }
  if (is_float(dtype_)) {
    uint32_t bits = 0;
    std::memcpy(reinterpret_cast<char*>(&bits) + (4 - item_), bytes, static_cast<size_t>(item_));
    float single;
    std::memcpy(&single, &bits, sizeof(single));
    return single;
  }
  if (dtype_ == DType::kInt32) {
    int32_t integer;
    std::memcpy(&integer, bytes, sizeof(integer));
    return integer;
  }
  return *bytes;
}

}  // namespace operators
