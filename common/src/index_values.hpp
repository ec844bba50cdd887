// Checks what index tensors say: cu_seqlens, state slots, expert ids, positions.
#pragma once

#include <functional>

#include "validate.hpp"

namespace clover {

// Gives host memory that holds a device tensor's bytes from `first` to `end`; on the CPU the memory itself.
using HostReader = std::function<const void*(uintptr_t first, uintptr_t end)>;

// Throws Error(CLOVER_INVALID_ARGUMENT) naming the tensor, the element and what it must be. A null reader: the values
// are in host memory.
void check_index_values(const Call& call, const HostReader* reader);

}  // namespace clover
