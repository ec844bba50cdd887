// What the schema says of each operator, as constant data: the only thing that validation and dispatch know of them.
#pragma once

#include <clover/abi_ops.h>

#include <cstddef>
#include <cstdint>

namespace clover {

enum class Role : uint8_t { kIn, kInOut, kOut };
enum class Strides : uint8_t { kLast, kAny, kMatrix };
enum class Values : uint8_t { kNone, kCuSeqlens, kInitialSlots, kFinalSlots, kExperts, kPositions };
enum class AttributeType : uint8_t { kInt, kFloat, kBool, kEnum };

// One axis: its size is mul * symbols[symbol] + add; symbol < 0 means the constant `add`.
struct AxisSpec {
  int16_t symbol;
  int32_t mul;
  int32_t add;
  const char* text;
};

struct DTypeSpec {
  const char* name;  // the type's name in the schema, for messages
  int16_t variable;  // tensors of a call with the same variable share one dtype; < 0: none
  uint16_t allowed;  // bit per DTypeBit
};

enum DTypeBit : uint16_t {
  kBitBFloat16 = 1,
  kBitFloat16 = 2,
  kBitFloat32 = 4,
  kBitInt32 = 8,
  kBitBool = 16,
  kBitElement = 32,  // anything of 1, 2, 4 or 8 bytes
};

struct TensorSpec {
  const char* name;
  const char* shape;  // "[T, HV, V]", for messages
  uint16_t offset;    // of its pointer in the args struct
  Role role;
  Strides strides;
  Values values;
  bool optional;
  int8_t rank;  // < 0: any up to kMaxRank, the same shape for every such tensor
  AxisSpec axes[4];
  DTypeSpec dtype;
  int16_t pools[2];  // symbols that index values must lie below; < 0: none
};

struct AttributeSpec {
  const char* name;
  uint16_t offset;
  AttributeType type;
  bool required;
  int16_t symbol;   // the symbol that an int attribute binds; < 0: none
  double min, max;  // inclusive
  bool above;       // min itself is excluded
  const char* const* choices;
  int32_t choice_count;
  double (*default_value)(const int64_t* d);  // null: absent unless given
};

struct RuleSpec {
  const char* text;
  bool (*holds)(const int64_t* d);
  const int16_t* symbols;
  int32_t symbol_count;
};

struct DerivedSpec {
  int16_t symbol;
  const char* text;
  int64_t (*value)(const int64_t* d);
};

// Tensors that come together (each needs the others) or that need another one.
struct NeedSpec {
  int16_t tensor;
  int16_t needs;
};

constexpr int kMaxRank = 6;
constexpr int kMaxSymbols = 16;
constexpr size_t kMaxArgsBytes = 256;

template <class T>
struct Span {
  const T* data;
  int32_t count;
  const T* begin() const { return data; }
  const T* end() const { return data + count; }
  const T& operator[](int32_t i) const { return data[i]; }
};

struct OperatorSpec {
  uint32_t number;
  const char* name;
  const char* signature;
  uint16_t args_bytes;
  bool workspace;
  Span<TensorSpec> tensors;
  Span<AttributeSpec> attributes;
  Span<const char*> symbols;
  Span<DerivedSpec> derived;
  Span<RuleSpec> rules;
  Span<NeedSpec> needs;
};

// Integer arithmetic of the schema's expressions: saturates, and a division by zero gives zero, so that absurd shapes
// end in a refused rule rather than in undefined behaviour.
namespace sat {
inline int64_t clamp(__int128 value) {
  return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : static_cast<int64_t>(value);
}
inline int64_t add(int64_t a, int64_t b) {
  return clamp(static_cast<__int128>(a) + b);
}
inline int64_t sub(int64_t a, int64_t b) {
  return clamp(static_cast<__int128>(a) - b);
}
inline int64_t mul(int64_t a, int64_t b) {
  return clamp(static_cast<__int128>(a) * b);
}
inline int64_t mod(int64_t a, int64_t b) {
  return b == 0 ? a : ((a % b) + b) % b;
}
inline int64_t div(int64_t a, int64_t b) {
  return b == 0 ? 0 : (a - mod(a, b)) / b;
}
}  // namespace sat

// All operators, sorted by number; and the one of that number, or null.
Span<OperatorSpec> all_operators();
const OperatorSpec* find_operator(uint32_t number);

}  // namespace clover
