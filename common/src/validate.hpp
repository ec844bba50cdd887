// One wording for every refusal: a call is checked against its OperatorSpec before any provider sees it.
#pragma once

#include "spec.hpp"

namespace clover {

// What validation learns of a call and hands on.
struct Call {
  const OperatorSpec* op = nullptr;
  alignas(16) unsigned char args[kMaxArgsBytes];  // a copy of the caller's struct, attributes resolved
  int64_t dims[kMaxSymbols] = {};                 // the symbols' values, laid out as clover_<op>_dims
  int32_t device_type = 0;
  int32_t device_id = 0;

  const clover_tensor* tensor(const TensorSpec& spec) const {
    const clover_tensor* pointer;
    __builtin_memcpy(&pointer, args + spec.offset, sizeof(pointer));
    return pointer;
  }
};

// Copies and checks a call: presence, rank, dtype, device, shape, strides, data, attributes, rules, overlap. Reads no
// element. Throws Error(CLOVER_INVALID_ARGUMENT). `data` = false is for workspace queries: data pointers are not looked
// at, and outputs may be absent.
void validate(const OperatorSpec& op, const void* args, bool data, Call* call);

}  // namespace clover
