// Kernels with one mistake each: the harness must refuse every one of them, and run the sound one.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "common/kernels/native/portable.cuh"

namespace {

struct Params {
  int* out;
};

using Quarter = clover::native::Team<16>;

}  // namespace

CLOVER_KERNEL(sound, Params) {
  CLOVER_SHARED(int, numbers, 256);
  CLOVER_DYNAMIC_SHARED(shared);
  numbers[255 - threadIdx.x] = static_cast<int>(threadIdx.x);
  shared[threadIdx.x] = 1;
  __syncthreads();
  const int sum = Quarter::sum(numbers[threadIdx.x]);
  int total = 0;
  const int rank = clover::native::block_rank(threadIdx.x % 3 == 0, &total);
  params.out[blockIdx.x * 256 + threadIdx.x] = sum * 1000000 + rank * 1000 + total;
}

CLOVER_KERNEL(barrier_that_some_skip, Params) {
  if (threadIdx.x < 200) __syncthreads();
}

CLOVER_KERNEL(two_barriers_for_one, Params) {
  if (threadIdx.x < 64) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

CLOVER_KERNEL(exchange_without_a_lane, Params) {
  if (threadIdx.x % 16 != 3) params.out[0] = Quarter::sum(1);
}

CLOVER_KERNEL(exchange_of_different_distances, Params) {
  params.out[0] = Quarter::exchange(1, threadIdx.x % 2 == 0 ? 1 : 2);
}

CLOVER_KERNEL(exchange_beyond_the_mask, Params) {
  params.out[0] = Quarter::exchange(1, 16);
}

CLOVER_KERNEL(ballot_without_a_lane, Params) {
  if (threadIdx.x != 7) params.out[0] = clover::native::count_bits(clover::native::ballot(true));
}

CLOVER_KERNEL(dynamic_shared_beyond_its_end, Params) {
  CLOVER_DYNAMIC_SHARED(shared);
  shared[threadIdx.x + 1] = 1;
}

CLOVER_KERNEL(static_shared_before_its_start, Params) {
  CLOVER_SHARED(int, numbers, 256);
  if (threadIdx.x == 0) numbers[-1] = 1;
}

CLOVER_KERNEL(vector_between_its_places, Params) {
  float values[4];
  clover::native::load_floats(reinterpret_cast<const float*>(params.out) + 1, values);
  params.out[0] = static_cast<int>(values[0]);
}

CLOVER_KERNEL(too_much_static_shared, Params) {
  CLOVER_SHARED(int, numbers, 16384);
  numbers[threadIdx.x] = 1;
}

namespace {

alignas(16) int out[3 * 256];

// What the harness says, or nothing when it is content.
std::string complaint(const char* kernel, int lanes) {
  const auto one = clover::native::make_launch(kernel, 3, Params{out}, 256);
  try {
    clover::simt::launch(&one, 1, lanes);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

bool sound_is_right() {
  for (int i = 0; i < 3 * 256; ++i) {
    const int thread = i % 256, team = thread / 16;
    const int sum = 16 * 255 - (16 * (16 * team) + 120);
    if (out[i] != sum * 1000000 + (thread + 2) / 3 * 1000 + 86) return false;
  }
  return true;
}

}  // namespace

int main() {
  int failures = 0;
  const char* const faulty[][2] = {{"barrier_that_some_skip", "divergence"},
                                   {"two_barriers_for_one", "divergence"},
                                   {"exchange_without_a_lane", "divergence"},
                                   {"exchange_of_different_distances", "do not ask for the same"},
                                   {"exchange_beyond_the_mask", "takes no part"},
                                   {"ballot_without_a_lane", "divergence"},
                                   {"dynamic_shared_beyond_its_end", "outside its arrays"},
                                   {"static_shared_before_its_start", "outside its arrays"},
                                   {"vector_between_its_places", "no multiple of that"},
                                   {"too_much_static_shared", "bytes in all"},
                                   {"no_such_kernel", "no kernel named"}};
  for (const int lanes : {32, 64}) {
    for (const auto& [kernel, expected] : faulty) {
      const std::string said = complaint(kernel, lanes);
      std::printf("%d lanes, %s: %s\n", lanes, kernel, said.c_str());
      failures += said.find(expected) == std::string::npos;
      const std::string after = complaint("sound", lanes);
      failures += !after.empty() || !sound_is_right();
    }
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
