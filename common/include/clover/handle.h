// How a call is to run: stream, workspace, provider. A default handle is the default stream, no workspace, any
// provider.
#pragma once

#include <clover/abi.h>

namespace clover {

struct Handle {
  void* stream = nullptr;  // CUstream or hipStream_t; ignored on the CPU
  void* workspace = nullptr;
  uint64_t workspace_bytes = 0;
  int32_t provider_slot = CLOVER_ANY_SLOT;

  clover_handle abi() const { return {sizeof(clover_handle), stream, workspace, workspace_bytes, provider_slot}; }
};

}  // namespace clover
