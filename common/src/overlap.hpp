// Whether strided tensors share memory, decided on elements rather than on the ranges they span: q and k as slices of
// one interleaved projection do not overlap although their ranges do.
#pragma once

#include <clover/abi.h>

namespace clover {

// The bytes from first to one past last that a tensor may touch. False when they do not fit the address space.
bool byte_range(const clover_tensor& tensor, uintptr_t* first, uintptr_t* end);

bool may_overlap(const clover_tensor& a, const clover_tensor& b);
bool may_overlap_itself(const clover_tensor& tensor);

}  // namespace clover
