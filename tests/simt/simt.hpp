// What the portable kernels see of a GPU when they run on the host: CUDA's words, made of fibres.
//
// The threads of a block are fibres of one operating-system thread, run one after another until each waits for others.
// A launch fails, with an exception, where a GPU would hang or give garbage: barriers that not all threads reach,
// exchanges with lanes that take no part, shared memory beyond its end.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/kernels/native/launch.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define threadIdx (::clover::simt::position->thread)
#define blockIdx (::clover::simt::position->block)
#define blockDim (::clover::simt::position->block_size)
#define gridDim (::clover::simt::position->grid_size)
#define warpSize (::clover::simt::warp_size)
#define __syncthreads() ::clover::simt::barrier(__FILE__, __LINE__)

struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};

struct alignas(16) float4 {
  float x, y, z, w;
};

namespace clover::simt {

struct Index {
  uint32_t x;
};

struct Position {
  Index thread, block, block_size, grid_size;
};

// A kernel of the sources, entered by its definition.
struct KernelEntry {
  using Call = void (*)(const void* params);

  KernelEntry(const char* name, size_t param_bytes, Call call);

  const char* name;
  size_t param_bytes;
  Call call;
  mutable bool executed = false;
  KernelEntry* next;
};

// Runs a plan on a machine of 32 or 64 lanes a warp; throws std::runtime_error when a launch is wrong.
void launch(const native::Launch* launches, int count, int lanes);

// The most shared memory that a block may have, static and dynamic together.
constexpr int64_t kSharedBytes = 65536;

// ---- for kernels ----

extern const Position* position;  // of the thread that runs
extern int warp_size;
void barrier(const char* file, int line);
uint64_t ballot(bool yes);

// Memory of the block. The key tells one array of the sources from another.
void* shared_array(const void* key, size_t bytes);
unsigned char* dynamic_shared();

// What a card does at a vector's address that is no multiple of its size.
void need_aligned(const void* address, int bytes);

// The value of the lane whose number differs in the bits of `distance`. All lanes of `mask`, and no others, must ask.
void exchange(uint64_t mask, int distance, void* value, size_t bytes);

template <class Value>
Value shuffle_xor(uint64_t mask, Value value, int distance) {
  exchange(mask, distance, &value, sizeof(Value));
  return value;
}

}  // namespace clover::simt
