// Whether strided tensors share memory, decided on elements rather than on the ranges they span: q and k as slices of
// one interleaved projection do not overlap although their ranges do.
#pragma once

#include <clover/abi.h>

#include <cstdint>

namespace clover {

// The bytes from first to one past last that a tensor may touch.
struct ByteRange {
  uintptr_t first = 0, end = 0;

  bool meets(const ByteRange& other) const { return first < other.end && other.first < end; }
};

// That of a tensor that is not empty. False when it does not fit the address space.
bool byte_range(const clover_tensor& tensor, ByteRange* range);

bool may_overlap(const clover_tensor& a, const clover_tensor& b);
bool may_overlap_itself(const clover_tensor& tensor);

}  // namespace clover
