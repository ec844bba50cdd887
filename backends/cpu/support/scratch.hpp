// A call's workspace cut into equal parts, one for each thread at work.
#pragma once

#include <clover/plugin.h>

#include "../thread_pool.hpp"
#include "view.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

class ThreadScratch {
 public:
  // What a call asks for when each thread needs `floats`.
  static uint64_t bytes(int64_t floats) { return static_cast<uint64_t>(thread_count() * part(floats)) * sizeof(float); }

  ThreadScratch(const clover_call& call, int64_t floats)
      : memory_(static_cast<float*>(call.workspace)),
        floats_(part(floats)),
        workers_(static_cast<int>(
            minimum(thread_count(), static_cast<int64_t>(call.workspace_bytes / sizeof(float)) / floats_))) {}

  // How many threads there is scratch for: the count may have changed since the workspace was made, after a fork say.
  int workers() const { return workers_; }
  float* of(int worker) const { return memory_ + worker * floats_; }

 private:
  static int64_t part(int64_t floats) { return round_up(floats, CLOVER_WORKSPACE_ALIGNMENT / sizeof(float)); }

  float* memory_;
  int64_t floats_;
  int workers_;
};

}  // namespace clover::cpu::CLOVER_CPU_ISA
