// Where one kernel ends and the next begins.
#pragma once

namespace clover::native {

// The first thing that every kernel does. From compute capability 9.0 on, launches may overlap
// (common/device/launcher.cpp): a kernel starts while the one before it in the stream still finishes, and waits here
// until that one's writes can be seen. Before this nothing may be read or written that another kernel writes or reads.
__device__ __forceinline__ void await_predecessor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace clover::native
