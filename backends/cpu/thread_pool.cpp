#include "thread_pool.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>

namespace clover::cpu {
namespace {

constexpr int kMaxThreads = 1024;

struct Job {
  RangeBody body;
  void* context;
  int64_t count;
  int64_t grain;
  int max_workers;
  std::atomic<int> workers{0};
  std::atomic<int64_t> next{0};

  void work() {
    const int worker = workers.fetch_add(1, std::memory_order_relaxed);
    if (worker >= max_workers) return;
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      body(context, begin, count - begin < grain ? count : begin + grain, worker);
    }
  }
};

struct Pool {
  std::atomic<bool> busy{false};  // whoever sets it owns the pool until it clears it
  std::atomic<int> threads{0};    // 0: not asked for yet
  int started = 0;                // the owner's

  std::mutex mutex;
  std::condition_variable job_given;
  std::condition_variable job_left;
  uint64_t generation = 0;
  Job* job = nullptr;
  int inside = 0;  // threads at work on `job`
};

int threads_from_environment() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  while (*end == ' ' || *end == '\t') ++end;
  // OpenMP allows a list, one number for each level of nesting; the first is ours.
  if (end == text || errno != 0 || value < 1 || (*end != '\0' && *end != ',')) return 0;
  return value < kMaxThreads ? static_cast<int>(value) : kMaxThreads;
}

int threads_from_affinity() {
  cpu_set_t set;
  if (sched_getaffinity(getpid(), sizeof(set), &set) == 0) return CPU_COUNT(&set);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);  // more processors than a cpu_set_t holds
  return online < 1 ? 1 : online < kMaxThreads ? static_cast<int>(online) : kMaxThreads;
}

Pool* the_pool = nullptr;

// A forked child has none of its parent's threads, and locks in whatever state they were.
void renew_in_child() {
  new (the_pool) Pool;
}

// Never destroyed: threads may wait in it while the process ends.
Pool& pool() {
  static Pool& instance = *[] {
    the_pool = new Pool;
    pthread_atfork(nullptr, nullptr, renew_in_child);
    return the_pool;
  }();
  return instance;
}

void* work_for_ever(void* argument) {
  Pool& pool = *static_cast<Pool*>(argument);
  std::unique_lock<std::mutex> lock(pool.mutex);
  uint64_t seen = 0;
  for (;;) {
    pool.job_given.wait(lock, [&] { return pool.generation != seen; });
    seen = pool.generation;
    Job* job = pool.job;
    if (job == nullptr) continue;  // over before this thread woke up
    ++pool.inside;
    lock.unlock();
    job->work();
    lock.lock();
    if (--pool.inside == 0) pool.job_left.notify_one();
  }
}

// Signals are the program's, and a thread may use every processor that the process may, wherever its creator is pinned.
void start_threads(Pool& pool, int wanted) {
  if (pool.started >= wanted) return;
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  cpu_set_t processors;
  if (sched_getaffinity(getpid(), sizeof(processors), &processors) == 0) {
    pthread_attr_setaffinity_np(&attributes, sizeof(processors), &processors);
  }
  while (pool.started < wanted) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, work_for_ever, &pool) != 0) break;  // fewer will do
    ++pool.started;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

void run_together(Pool& pool, Job& job, int64_t helpers) {
  {
    const std::lock_guard<std::mutex> lock(pool.mutex);
    pool.job = &job;
    ++pool.generation;
  }
  for (int64_t i = 0; i < helpers; ++i) pool.job_given.notify_one();
  job.work();
  std::unique_lock<std::mutex> lock(pool.mutex);
  pool.job = nullptr;
  pool.job_left.wait(lock, [&] { return pool.inside == 0; });
}

}  // namespace

int thread_count() {
  Pool& shared = pool();
  int threads = shared.threads.load(std::memory_order_relaxed);
  if (threads == 0) {
    threads = threads_from_environment();
    if (threads == 0) threads = threads_from_affinity();
    shared.threads.store(threads, std::memory_order_relaxed);
  }
  return threads;
}

void run_range(int64_t count, int64_t grain, int max_workers, RangeBody body, void* context) {
  if (count <= 0) return;
  const int threads = count > grain ? thread_count() : 1;
  const int workers = threads < max_workers ? threads : max_workers;
  if (workers <= 1 || pool().busy.exchange(true, std::memory_order_acquire)) {
    body(context, 0, count, 0);
    return;
  }
  Pool& shared = pool();
  start_threads(shared, threads - 1);
  Job job{body, context, count, grain, workers};
  const int64_t other_pieces = (count - 1) / grain;
  run_together(shared, job, other_pieces < workers - 1 ? other_pieces : workers - 1);
  shared.busy.store(false, std::memory_order_release);
}

}  // namespace clover::cpu
