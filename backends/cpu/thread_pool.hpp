// The backend's threads. Work is a range of indices, cut into pieces that any thread may take: what is computed for an
// index must not depend on the pieces.
#pragma once

#include <cstdint>

namespace clover::cpu {

// `worker` tells apart the threads that work on one range at the same time: 0 ... max_workers - 1.
using RangeBody = void (*)(void* context, int64_t begin, int64_t end, int worker);

// How many threads may work on a range, the caller's included: OMP_NUM_THREADS when that is a positive number, else as
// many processors as the process may run on.
int thread_count();

// Calls `body` for pieces of at most `grain` indices until [0, count) is done. The caller works too. While the pool is
// at work for somebody else, the caller's thread does the whole range as one piece: so a body may call this as well.
void run_range(int64_t count, int64_t grain, int max_workers, RangeBody body, void* context);

}  // namespace clover::cpu
