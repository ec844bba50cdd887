// libclover_ops_ffi.so: the Python binding. It registers one packed function per operator with apache-tvm-ffi and reads
// the arguments by the operator's spec, so that it knows no operator by name. The core library never needs it.
//
// A packed call is: stream, workspace address, workspace bytes, provider slot, tensors..., attributes...; None leaves
// out an optional tensor or an attribute. A tensor is a DLPack tensor, or the address of a clover_tensor.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <cstring>
#include <string>

#include "../spec.hpp"

namespace clover {
namespace {

namespace ffi = tvm::ffi;

constexpr int kLeading = 4;

[[noreturn]] void raise(const char* kind, const std::string& message) {
  throw ffi::Error(kind, message, "");
}

// The Python exception class for a status; clover_ops/errors.py registers these kinds.
void check(int32_t status) {
  static constexpr const char* kKinds[] = {"",
                                           "CloverInvalidArgument",
                                           "CloverUnsupported",
                                           "CloverMissingWorkspace",
                                           "CloverDriverError",
                                           "CloverCompileError",
                                           "CloverAbiMismatch"};
  if (status == CLOVER_OK) return;
  raise(status >= 1 && status <= 6 ? kKinds[status] : "CloverInternalError", clover_last_error());
}

class PackedCall {
 public:
  PackedCall(const OperatorSpec& op, ffi::PackedArgs packed) : op_(op), packed_(packed) {
    const int expected = kLeading + op.tensors.count + op.attributes.count;
    if (packed.size() != expected)
      raise("TypeError", std::string(op.name) + ": takes " + std::to_string(expected) + " packed arguments, got " +
                             std::to_string(packed.size()));
    std::memset(args_, 0, sizeof(args_));
    for (int32_t i = 0; i < op.tensors.count; ++i) read_tensor(op.tensors[i], packed[kLeading + i]);
    for (int32_t i = 0; i < op.attributes.count; ++i)
      read_attribute(i, op.attributes[i], packed[kLeading + op.tensors.count + i]);
    const uint64_t size = op.args_bytes;
    std::memcpy(args_, &size, sizeof(size));
    std::memcpy(args_ + sizeof(size), &given_, sizeof(given_));
    handle_.struct_size = sizeof(handle_);
    handle_.stream = reinterpret_cast<void*>(packed[0].cast<int64_t>());
    handle_.workspace = reinterpret_cast<void*>(packed[1].cast<int64_t>());
    const int64_t workspace_bytes = packed[2].cast<int64_t>();
    asks_ = workspace_bytes == -1;
    handle_.workspace_bytes = asks_ ? 0 : static_cast<uint64_t>(workspace_bytes);
    handle_.provider_slot = static_cast<int32_t>(packed[3].cast<int64_t>());
  }

  const clover_handle* handle() const { return &handle_; }
  const void* args() const { return args_; }
  bool asks() const { return asks_; }

 private:
  [[noreturn]] void refuse_type(const char* name, const char* wanted, const ffi::AnyView& got) const {
    raise("TypeError", std::string(op_.name) + ": " + name + " must be " + wanted + ", got " + got.GetTypeKey());
  }

  void read_tensor(const TensorSpec& spec, const ffi::AnyView& value) {
    const clover_tensor* tensor = nullptr;
    if (value.type_index() == ffi::TypeIndex::kTVMFFIOpaquePtr) {
      tensor = static_cast<const clover_tensor*>(value.cast<void*>());
    } else if (value.type_index() != ffi::TypeIndex::kTVMFFINone) {
      const auto dl_tensor = value.try_cast<DLTensor*>();
      if (!dl_tensor) refuse_type(spec.name, "a tensor", value);
      static_assert(sizeof(DLTensor) == sizeof(clover_tensor));
      tensor = reinterpret_cast<const clover_tensor*>(*dl_tensor);
    }
    std::memcpy(args_ + spec.offset, &tensor, sizeof(tensor));
  }

  void read_attribute(int32_t index, const AttributeSpec& spec, const ffi::AnyView& value) {
    if (value.type_index() == ffi::TypeIndex::kTVMFFINone) return;
    given_ |= uint64_t{1} << index;
    unsigned char* field = args_ + spec.offset;
    const bool is_bool = value.type_index() == ffi::TypeIndex::kTVMFFIBool;
    const bool is_int = value.type_index() == ffi::TypeIndex::kTVMFFIInt;
    if (spec.type == AttributeType::kInt) {
      if (!is_int) refuse_type(spec.name, "an int", value);
      const int64_t number = value.cast<int64_t>();
      std::memcpy(field, &number, sizeof(number));
    } else if (spec.type == AttributeType::kFloat) {
      if (!is_int && value.type_index() != ffi::TypeIndex::kTVMFFIFloat) refuse_type(spec.name, "a float", value);
      const double number = value.cast<double>();
      std::memcpy(field, &number, sizeof(number));
    } else if (spec.type == AttributeType::kBool) {
      if (!is_bool) refuse_type(spec.name, "a bool", value);
      const int32_t number = value.cast<bool>();
      std::memcpy(field, &number, sizeof(number));
    } else {
      const int32_t number = choice(spec, value);
      std::memcpy(field, &number, sizeof(number));
    }
  }

  int32_t choice(const AttributeSpec& spec, const ffi::AnyView& value) const {
    const auto text = value.try_cast<ffi::String>();
    if (!text) refuse_type(spec.name, "a string", value);
    std::string choices;
    for (int32_t i = 0; i < spec.choice_count; ++i) {
      if (*text == spec.choices[i]) return i;
      choices += (i ? ", " : "") + std::string(spec.choices[i]);
    }
    raise("CloverInvalidArgument", std::string(op_.name) + ": " + spec.name + " must be one of " + choices + ", got '" +
                                       std::string(*text) + "'");
  }

  const OperatorSpec& op_;
  ffi::PackedArgs packed_;
  uint64_t given_ = 0;
  bool asks_ = false;
  alignas(16) unsigned char args_[kMaxArgsBytes];
  clover_handle handle_{};
};

void register_operator(const OperatorSpec& op) {
  const std::string name = std::string("clover_ops.") + op.name;
  ffi::reflection::GlobalDef().def_packed(name.c_str(), [&op](ffi::PackedArgs packed, ffi::Any* result) {
    const PackedCall call(op, packed);
    uint64_t missing = 0;
    check(clover_call_operator(op.number, call.handle(), call.args(), call.asks() ? &missing : nullptr));
    *result = static_cast<int64_t>(missing);
  });
  const std::string query = name + ".workspace_size";
  ffi::reflection::GlobalDef().def_packed(query.c_str(), [&op](ffi::PackedArgs packed, ffi::Any* result) {
    const PackedCall call(op, packed);
    uint64_t bytes = 0;
    check(clover_operator_workspace_size(op.number, call.handle(), call.args(), &bytes));
    *result = static_cast<int64_t>(bytes);
  });
}

void register_queries() {
  ffi::reflection::GlobalDef()
      .def("clover_ops.describe",
           [] {
             std::string text;
             check(clover_describe(
                 [](void* out, const char* data, uint64_t size) { static_cast<std::string*>(out)->assign(data, size); },
                 &text));
             return ffi::String(text);
           })
      .def("clover_ops.load_plugin", [](ffi::String manifest) { check(clover_load_plugin(manifest.c_str())); })
      .def("clover_ops.discover_plugins", [] { check(clover_discover_plugins()); })
      .def("clover_ops.warmup",
           [](int64_t device_type, int64_t device_id) {
             check(clover_warmup(static_cast<int32_t>(device_type), static_cast<int32_t>(device_id)));
           })
      .def("clover_ops.supports",
           [](int64_t op, int64_t device_type, int64_t device_id) {
             int32_t answer = 0;
             check(clover_supports(static_cast<uint32_t>(op), static_cast<int32_t>(device_type),
                                   static_cast<int32_t>(device_id), &answer));
             return answer != 0;
           })
      .def("clover_ops.provides", [](int64_t op, ffi::String backend) {
        int32_t answer = 0;
        check(clover_provides(static_cast<uint32_t>(op), backend.c_str(), &answer));
        return answer != 0;
      });
}

TVM_FFI_STATIC_INIT_BLOCK() {
  for (const OperatorSpec& op : all_operators()) register_operator(op);
  register_queries();
}

}  // namespace
}  // namespace clover
