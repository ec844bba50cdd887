// One call from the C boundary to a provider.
#pragma once

#include <clover/abi.h>

#include <cstdint>

namespace clover {

// Validates the call, chooses a provider, checks the workspace and runs it. Throws Error. With `missing`, a workspace
// that is absent is no error: nothing runs, and *missing is what it must hold (0 when the operator has run).
void run_operator(uint32_t op, const clover_handle* handle, const void* args, uint64_t* missing = nullptr);

// The largest workspace that a provider which takes the call asks for; of the handle's slot alone when it names one.
uint64_t operator_workspace_size(uint32_t op, const clover_handle* handle, const void* args);

}  // namespace clover
