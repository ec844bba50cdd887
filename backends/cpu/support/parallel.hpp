// Ranges of work for the pool.
#pragma once

#include "../thread_pool.hpp"
#include "view.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {

// Calls body(begin, end, worker) for pieces of [0, count). `work` is about how many simple steps on an element an index
// takes: pieces are made large enough to be worth a thread's while.
template <class Body>
inline void parallel_for(int64_t count, int64_t work, int max_workers, const Body& body) {
  constexpr int64_t kWorthwhile = 16384;
  const auto call = [](void* context, int64_t begin, int64_t end, int worker) {
    (*static_cast<const Body*>(context))(begin, end, worker);
  };
  run_range(count, maximum(1, kWorthwhile / maximum(1, work)), max_workers, call, const_cast<Body*>(&body));
}

template <class Body>
inline void parallel_for(int64_t count, int64_t work, const Body& body) {
  parallel_for(count, work, thread_count(), [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
