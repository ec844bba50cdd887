#include "validate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "error.hpp"
#include "overlap.hpp"
#include "tensor_text.hpp"

namespace clover {
namespace {

constexpr int32_t kUnbound = -1;

uint16_t dtype_bit(clover_dtype dtype) {
  if (dtype.lanes != 1) return 0;
  uint16_t bit = 0;
  if (dtype.code == CLOVER_BFLOAT && dtype.bits == 16) bit = kBitBFloat16;
  if (dtype.code == CLOVER_FLOAT && dtype.bits == 16) bit = kBitFloat16;
  if (dtype.code == CLOVER_FLOAT && dtype.bits == 32) bit = kBitFloat32;
  if (dtype.code == CLOVER_INT && dtype.bits == 32) bit = kBitInt32;
  if (dtype.code == CLOVER_BOOL && dtype.bits == 8) bit = kBitBool;
  const bool element = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  return bit | (element ? kBitElement : 0);
}

std::string allowed_text(uint16_t allowed) {
  static constexpr const char* kNames[] = {"bfloat16", "float16", "float32",
                                           "int32",    "bool",    "an element type of 1, 2, 4 or 8 bytes"};
  std::string text;
  for (int i = 0; i < 6; ++i)
    if (allowed & (1 << i)) text += (text.empty() ? "" : " or ") + std::string(kNames[i]);
  return text;
}

std::string number_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%g", value);
  return buffer;
}

int64_t total_bytes(const clover_tensor& t) {
  int64_t bytes = item_bytes(t.dtype);
  for (int32_t axis = 0; axis < t.ndim; ++axis) bytes = sat::mul(bytes, t.shape[axis]);
  return bytes;
}

// Checks one call, in the order in which a reader would want to hear of mistakes.
class Validator {
 public:
  Validator(const OperatorSpec& op, Call* call) : op_(op), call_(call) {
    std::fill(binder_, binder_ + kMaxSymbols, kUnbound);
  }

  void run(const void* args, bool data) {
    copy_args(args);
    check_inputs_present();
    read_given_attributes();
    each_present([&](int32_t i) { check_kind(i); });
    each_present([&](int32_t i) { bind_shape(i); });
    each_present([&](int32_t i) { check_layout(i, data); });
    for (const DerivedSpec& derived : op_.derived) call_->dims[derived.symbol] = derived.value(call_->dims);
    check_rules();
    if (data) check_outputs_present();
    fill_default_attributes();
    if (data) check_overlap();
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(CLOVER_INVALID_ARGUMENT, std::string(op_.name) + ": " + message);
  }
  [[noreturn]] void refuse(const char* who, const std::string& what) const { refuse(std::string(who) + " " + what); }

  const clover_tensor* tensor(int32_t i) const { return call_->tensor(op_.tensors[i]); }
  unsigned char* field(const AttributeSpec& a) const { return call_->args + a.offset; }

  // A smaller struct comes from an older caller: what it lacks is zero, hence absent or not given.
  void copy_args(const void* args) {
    if (args == nullptr) refuse("args is null");
    uint64_t size;
    std::memcpy(&size, args, sizeof(size));
    if (size < 2 * sizeof(uint64_t) || size > op_.args_bytes)
      throw Error(CLOVER_ABI_MISMATCH, std::string(op_.name) + ": args.struct_size is " + std::to_string(size) +
                                           ", this library knows up to " + std::to_string(op_.args_bytes));
    std::memset(call_->args, 0, sizeof(call_->args));
    std::memcpy(call_->args, args, size);
    const uint64_t full = op_.args_bytes;
    std::memcpy(call_->args, &full, sizeof(full));
    std::memcpy(&given_, call_->args + sizeof(uint64_t), sizeof(given_));
    if (op_.attributes.count < 64 && (given_ >> op_.attributes.count) != 0)
      throw Error(CLOVER_ABI_MISMATCH,
                  std::string(op_.name) + ": args.given names attributes this library does not know");
  }

  template <class Body>
  void each_present(Body&& body) {
    for (int32_t i = 0; i < op_.tensors.count; ++i)
      if (tensor(i) != nullptr) body(i);
  }

  // Outputs last: a front end that could not size an output, since an input was wrong, leaves it out to hear what was
  // wrong.
  void check_outputs_present() const {
    for (int32_t i = 0; i < op_.tensors.count; ++i)
      if (tensor(i) == nullptr && op_.tensors[i].role == Role::kOut) refuse(op_.tensors[i].name, "is missing");
  }

  void check_inputs_present() const {
    for (int32_t i = 0; i < op_.tensors.count; ++i)
      if (tensor(i) == nullptr && !op_.tensors[i].optional && op_.tensors[i].role != Role::kOut)
        refuse(op_.tensors[i].name, "is missing");
    for (const NeedSpec& need : op_.needs)
      if (tensor(need.tensor) != nullptr && tensor(need.needs) == nullptr)
        refuse(std::string(op_.tensors[need.tensor].name) + " was given without " + op_.tensors[need.needs].name +
               ", which it needs");
  }

  void read_given_attributes() {
    for (int32_t i = 0; i < op_.attributes.count; ++i) {
      const AttributeSpec& a = op_.attributes[i];
      if (!(given_ >> i & 1)) {
        if (a.required) refuse(a.name, "is missing");
        continue;
      }
      check_domain(a);
      if (a.symbol >= 0) {
        std::memcpy(&call_->dims[a.symbol], field(a), sizeof(int64_t));
        binder_[a.symbol] = op_.tensors.count;
      }
    }
  }

  void check_domain(const AttributeSpec& a) const {
    if (a.type == AttributeType::kEnum || a.type == AttributeType::kBool) {
      int32_t value;
      std::memcpy(&value, field(a), sizeof(value));
      if (a.type == AttributeType::kBool && value != 0 && value != 1)
        refuse(a.name, "must be 0 or 1, got " + std::to_string(value));
      if (a.type == AttributeType::kEnum && (value < 0 || value >= a.choice_count)) {
        std::string choices;
        for (int32_t i = 0; i < a.choice_count; ++i) choices += (i ? ", " : "") + std::string(a.choices[i]);
        refuse(a.name, "must be one of " + choices + ", got number " + std::to_string(value));
      }
      return;
    }
    double value;
    std::string text;
    if (a.type == AttributeType::kInt) {
      int64_t integer;
      std::memcpy(&integer, field(a), sizeof(integer));
      value = static_cast<double>(integer);
      text = std::to_string(integer);
    } else {
      std::memcpy(&value, field(a), sizeof(value));
      text = number_text(value);
      if (!std::isfinite(value)) refuse(a.name, "must be finite, got " + text);
    }
    const bool low = a.above ? value > a.min : value >= a.min;
    if (!low)
      refuse(a.name,
             std::string("must be ") + (a.above ? "above " : "at least ") + number_text(a.min) + ", got " + text);
    if (value > a.max) refuse(a.name, "must be at most " + number_text(a.max) + ", got " + text);
  }

  void check_kind(int32_t i) {
    const TensorSpec& spec = op_.tensors[i];
    const clover_tensor& t = *tensor(i);
    if (t.ndim < 0 || t.ndim > 64 || (t.ndim > 0 && t.shape == nullptr))
      refuse(spec.name, "is malformed: ndim " + std::to_string(t.ndim) + (t.shape ? "" : ", no shape"));
    const bool rank_ok = spec.rank < 0 ? t.ndim <= kMaxRank : t.ndim == spec.rank;
    if (!rank_ok)
      refuse(spec.name,
             "must have " + (spec.rank < 0 ? "at most " + std::to_string(kMaxRank) : std::to_string(spec.rank)) +
                 " axes " + spec.shape + ", got " + std::to_string(t.ndim) + ": " + shape_text(t.shape, t.ndim));
    for (int32_t axis = 0; axis < t.ndim; ++axis)
      if (t.shape[axis] < 0) refuse(spec.name, "has a negative size: " + shape_text(t.shape, t.ndim));
    if (!(dtype_bit(t.dtype) & spec.dtype.allowed))
      refuse(spec.name, "must be " + allowed_text(spec.dtype.allowed) + ", got " + dtype_text(t.dtype));
    check_same_dtype(i);
    if (i == first_present()) {
      call_->device_type = t.device_type;
      call_->device_id = t.device_id;
    } else if (t.device_type != call_->device_type || t.device_id != call_->device_id) {
      refuse(spec.name, "is on " + device_text(t.device_type, t.device_id) + " but " +
                            op_.tensors[first_present()].name + " is on " +
                            device_text(call_->device_type, call_->device_id) + "; all tensors must share one device");
    }
  }

  int32_t first_present() const {
    int32_t i = 0;
    while (tensor(i) == nullptr) ++i;
    return i;
  }

  void check_same_dtype(int32_t i) const {
    const TensorSpec& spec = op_.tensors[i];
    if (spec.dtype.variable < 0) return;
    for (int32_t other = 0; other < i; ++other) {
      if (op_.tensors[other].dtype.variable != spec.dtype.variable || tensor(other) == nullptr) continue;
      const clover_dtype a = tensor(other)->dtype, b = tensor(i)->dtype;
      if (a.code != b.code || a.bits != b.bits || a.lanes != b.lanes)
        refuse(std::string(spec.name) + " is " + dtype_text(b) + " but " + op_.tensors[other].name + " is " +
               dtype_text(a) + "; they must have one dtype");
      return;
    }
  }

  void bind_shape(int32_t i) {
    const TensorSpec& spec = op_.tensors[i];
    const clover_tensor& t = *tensor(i);
    if (spec.rank < 0) return check_same_shape(i);
    for (int32_t axis = 0; axis < spec.rank; ++axis) {
      const AxisSpec& a = spec.axes[axis];
      if (a.symbol >= 0 && binder_[a.symbol] == kUnbound) {
        const int64_t rest = sat::sub(t.shape[axis], a.add);
        if (rest < 0 || rest % a.mul != 0) refuse_shape(i);
        call_->dims[a.symbol] = rest / a.mul;
        binder_[a.symbol] = i;
      } else if (t.shape[axis] != expected(a)) {
        refuse_shape(i);
      }
    }
  }

  int64_t expected(const AxisSpec& a) const {
    return a.symbol < 0 ? a.add : sat::add(sat::mul(a.mul, call_->dims[a.symbol]), a.add);
  }

  // "bias must have shape [C] with C = 64 (x), got [32]"
  [[noreturn]] void refuse_shape(int32_t i) const {
    const TensorSpec& spec = op_.tensors[i];
    std::string known;
    for (int32_t axis = 0; axis < spec.rank; ++axis) {
      const int16_t symbol = spec.axes[axis].symbol;
      if (symbol < 0 || binder_[symbol] == kUnbound || binder_[symbol] == i) continue;
      const bool attribute = binder_[symbol] == op_.tensors.count;
      known += (known.empty() ? " with " : ", ") + std::string(op_.symbols[symbol]) + " = " +
               std::to_string(call_->dims[symbol]) +
               (attribute ? " (as given)" : " (" + std::string(op_.tensors[binder_[symbol]].name) + ")");
    }
    refuse(std::string(spec.name) + " must have shape " + spec.shape + known + ", got " +
           shape_text(tensor(i)->shape, tensor(i)->ndim));
  }

  void check_same_shape(int32_t i) const {
    for (int32_t other = 0; other < i; ++other) {
      if (op_.tensors[other].rank >= 0 || tensor(other) == nullptr) continue;
      const clover_tensor &a = *tensor(other), &b = *tensor(i);
      if (a.ndim != b.ndim || !std::equal(a.shape, a.shape + a.ndim, b.shape))
        refuse(std::string(op_.tensors[i].name) + " must have " + op_.tensors[other].name + "'s shape " +
               shape_text(a.shape, a.ndim) + ", got " + shape_text(b.shape, b.ndim));
    }
  }

  void check_layout(int32_t i, bool data) {
    const TensorSpec& spec = op_.tensors[i];
    const clover_tensor& t = *tensor(i);
    ranges_[i] = {};
    if (is_empty(t)) return;
    const auto unit = [&](int32_t axis) { return t.shape[axis] == 1 || stride_of(t, axis) == 1; };
    const int32_t last = t.ndim - 1;
    if (spec.strides == Strides::kLast && last >= 0 && !unit(last))
      refuse(std::string(spec.name) + " must have unit stride in its last axis, got strides " + strides_text(t));
    if (spec.strides == Strides::kMatrix && !unit(last) && !unit(last - 1))
      refuse(std::string(spec.name) + " must have unit stride in one of its last two axes, got strides " +
             strides_text(t));
    // The product of the sizes counts too: strides of zero hide it from the addresses, and providers compute with it.
    if (!byte_range(t, &ranges_[i]) || t.byte_offset > static_cast<uint64_t>(INT64_MAX) || total_bytes(t) == INT64_MAX)
      refuse(std::string(spec.name) + " reaches outside the address space: shape " + shape_text(t.shape, t.ndim) +
             ", strides " + strides_text(t));
    if (!data) return;
    if (t.data == nullptr) refuse(std::string(spec.name) + " has elements but its data is null");
    const int64_t item = item_bytes(t.dtype);
    if ((reinterpret_cast<uintptr_t>(t.data) + t.byte_offset) % item != 0)
      refuse(std::string(spec.name) + " is not aligned to its elements of " + std::to_string(item) + " bytes");
    if (spec.role != Role::kIn && may_overlap_itself(t))
      refuse(std::string(spec.name) + " is written but overlaps itself: shape " + shape_text(t.shape, t.ndim) +
             ", strides " + strides_text(t));
  }

  void check_rules() const {
    for (const RuleSpec& rule : op_.rules) {
      if (rule.holds(call_->dims)) continue;
      std::string values, origins;
      for (int32_t i = 0; i < rule.symbol_count; ++i) {
        const int16_t symbol = rule.symbols[i];
        values += (i ? ", " : "") + std::string(op_.symbols[symbol]) + " = " + std::to_string(call_->dims[symbol]);
        for (const DerivedSpec& derived : op_.derived)
          if (derived.symbol == symbol) origins += std::string("; ") + op_.symbols[symbol] + " is " + derived.text;
      }
      refuse(std::string("needs ") + rule.text + ", got " + values + origins);
    }
  }

  void fill_default_attributes() const {
    for (int32_t i = 0; i < op_.attributes.count; ++i) {
      const AttributeSpec& a = op_.attributes[i];
      if ((given_ >> i & 1) || a.default_value == nullptr) continue;
      const double value = a.default_value(call_->dims);
      if (a.type == AttributeType::kFloat) {
        std::memcpy(field(a), &value, sizeof(value));
      } else if (a.type == AttributeType::kInt) {
        const int64_t integer = static_cast<int64_t>(value);
        std::memcpy(field(a), &integer, sizeof(integer));
      } else {
        const int32_t number = static_cast<int32_t>(value);
        std::memcpy(field(a), &number, sizeof(number));
      }
    }
  }

  // Ranges that do not meet settle nearly every pair of every call; only the others are looked at element by element.
  void check_overlap() const {
    for (int32_t i = 0; i < op_.tensors.count; ++i) {
      if (op_.tensors[i].role == Role::kIn || tensor(i) == nullptr) continue;
      for (int32_t j = 0; j < op_.tensors.count; ++j) {
        const bool seen = j < i && op_.tensors[j].role != Role::kIn;
        if (j == i || seen || tensor(j) == nullptr) continue;
        if (!ranges_[i].meets(ranges_[j]) || !may_overlap(*tensor(i), *tensor(j))) continue;
        refuse(std::string(op_.tensors[i].name) + " is written but overlaps " + op_.tensors[j].name +
               "; what is written may share no memory with another argument");
      }
    }
  }

  static constexpr size_t kMaxTensors = kMaxArgsBytes / sizeof(void*);

  const OperatorSpec& op_;
  Call* call_;
  uint64_t given_ = 0;
  int32_t binder_[kMaxSymbols];    // which tensor bound a symbol; the tensor count for an attribute
  ByteRange ranges_[kMaxTensors];  // of each present tensor, from its layout's check on; an empty one meets no other
};

}  // namespace

void validate(const OperatorSpec& op, const void* args, bool data, Call* call) {
  call->op = &op;
  Validator(op, call).run(args, data);
}

}  // namespace clover
