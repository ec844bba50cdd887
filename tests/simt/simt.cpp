// The machine: fibres, their scheduler, shared memory, and what is checked.
#include "simt.hpp"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace clover::simt {

const Position* position = nullptr;
int warp_size = 32;

namespace {

constexpr int kMaxThreads = 1024;
constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kGuardBytes = 1024;
constexpr unsigned char kGuard = 0xA5;
constexpr unsigned char kFresh = 0xFF;  // shared memory starts as NaN

enum class Wait { kNothing, kBarrier, kExchange, kBallot, kDone };

struct Fibre {
  bool started = false;
  Wait wait = Wait::kDone;
  ucontext_t first;
  jmp_buf here;
  Position position;
  // What it waits with.
  const char* file = nullptr;
  int line = 0;
  uint64_t mask = 0;
  int distance = 0;
  size_t bytes = 0;
  unsigned char value[64], result[64];
  bool vote = false;
  uint64_t votes = 0;
};

KernelEntry* first_entry = nullptr;

class Machine {
 public:
  void run(const native::Launch& launch, int lanes);

  Fibre& current() { return *current_; }
  void suspend();
  void* shared_array(const void* key, size_t bytes);
  unsigned char* dynamic_shared() { return dynamic_; }
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

 private:
  struct Array {
    const void* key;
    size_t bytes;
    unsigned char* data;
  };

  static void enter();
  void prepare(const native::Launch& launch);
  void run_block(uint32_t block);
  void resume(Fibre& fibre);
  void run_warp(int warp);
  bool release_exchange(int warp);
  bool release_ballot(int warp);
  bool release_barrier();
  std::string deadlock() const;
  std::string name_of(const Fibre& fibre) const;
  unsigned char* take(size_t bytes);
  void check_guards();

  int rotated(int i, int count) const { return (start_ + (backwards_ ? count - i : i)) % count; }
  Fibre* fibre(int thread) const { return fibres_[static_cast<size_t>(thread)].get(); }

  std::vector<std::unique_ptr<Fibre>> fibres_;
  Fibre* current_ = nullptr;
  jmp_buf scheduler_;
  const KernelEntry* kernel_ = nullptr;
  const native::Launch* launch_ = nullptr;
  int threads_ = 0, lanes_ = 32;
  std::vector<unsigned char> arena_;
  size_t arena_used_ = 0;
  unsigned char* dynamic_ = nullptr;
  std::vector<Array> arrays_;
  std::string failure_;
  std::mt19937 random_{20240229};
  int start_ = 0;
  bool backwards_ = false;
};

Machine& machine() {
  static Machine* const the_only = new Machine;  // never destroyed: its fibres may be in the middle of something
  return *the_only;
}

// What a fibre does for good: one kernel after another.
void Machine::enter() {
  Machine& self = machine();
  for (;;) {
    self.kernel_->call(self.launch_->params);
    self.current_->wait = Wait::kDone;
    self.suspend();
  }
}

void Machine::suspend() {
  Fibre* const own = current_;
  if (_setjmp(own->here) == 0) _longjmp(scheduler_, 1);
}

void Machine::resume(Fibre& fibre) {
  current_ = &fibre;
  position = &fibre.position;
  fibre.wait = Wait::kNothing;
  if (_setjmp(scheduler_) != 0) return;
  if (fibre.started) _longjmp(fibre.here, 1);
  fibre.started = true;
  setcontext(&fibre.first);
}

unsigned char* Machine::take(size_t bytes) {
  const size_t padded = (bytes + 63) / 64 * 64;
  if (arena_used_ + padded + kGuardBytes > arena_.size()) {
    fail("shared memory: more than a block may have");
    arena_used_ = kGuardBytes;
  }
  unsigned char* const place = arena_.data() + arena_used_;
  std::memset(place, kFresh, bytes);
  arena_used_ += padded + kGuardBytes;
  return place;
}

void* Machine::shared_array(const void* key, size_t bytes) {
  for (const Array& array : arrays_) {
    if (array.key == key) return array.data;
  }
  arrays_.push_back({key, bytes, take(bytes)});
  return arrays_.back().data;
}

// Bytes between the arrays still have their pattern; the sum of all sizes is what a block may have.
void Machine::check_guards() {
  size_t total = 0;
  const unsigned char* previous_end = arena_.data();
  const auto check = [&](const unsigned char* from, const unsigned char* to) {
    if (std::any_of(from, to, [](unsigned char byte) { return byte != kGuard; })) {
      fail("shared memory: written outside its arrays");
    }
  };
  for (const Array& array : arrays_) {
    check(previous_end, array.data);
    previous_end = array.data + array.bytes;
    total += array.bytes;
  }
  check(previous_end, arena_.data() + std::min(arena_used_ + kGuardBytes, arena_.size()));
  if (total > static_cast<size_t>(kSharedBytes)) fail("shared memory: " + std::to_string(total) + " bytes in all");
}

void Machine::prepare(const native::Launch& launch) {
  kernel_ = nullptr;
  for (const KernelEntry* entry = first_entry; entry != nullptr; entry = entry->next) {
    if (std::strcmp(entry->name, launch.kernel) == 0) kernel_ = entry;
  }
  if (kernel_ == nullptr) throw std::runtime_error(std::string("no kernel named ") + launch.kernel);
  const std::string name = launch.kernel;
  if (kernel_->param_bytes != launch.param_bytes) throw std::runtime_error(name + ": parameters of another size");
  for (int axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] < 1 || launch.grid[axis] > (axis == 0 ? 0x7fffffffu : 65535u) || launch.block[axis] < 1) {
      throw std::runtime_error(name + ": a grid or block that no device takes");
    }
    if (axis > 0 && (launch.grid[axis] != 1 || launch.block[axis] != 1)) {
      throw std::runtime_error(name + ": more than one dimension");
    }
  }
  if (launch.block[0] > kMaxThreads || launch.block[0] % static_cast<uint32_t>(lanes_) != 0) {
    throw std::runtime_error(name + ": a block of " + std::to_string(launch.block[0]) + " threads");
  }
  launch_ = &launch;
  threads_ = static_cast<int>(launch.block[0]);
  if (arena_.empty()) arena_.resize(static_cast<size_t>(kSharedBytes) + 64 * kGuardBytes);
  while (fibres_.size() < static_cast<size_t>(threads_)) {
    auto fibre = std::make_unique<Fibre>();
    getcontext(&fibre->first);
    fibre->first.uc_stack.ss_size = kStackBytes;
    fibre->first.uc_stack.ss_sp =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fibre->first.uc_stack.ss_sp == MAP_FAILED) throw std::runtime_error("no memory for a fibre's stack");
    fibre->first.uc_link = nullptr;
    makecontext(&fibre->first, &Machine::enter, 0);
    fibres_.push_back(std::move(fibre));
  }
}

void Machine::run(const native::Launch& launch, int lanes) {
  lanes_ = warp_size = lanes;
  prepare(launch);
  kernel_->executed = true;
  std::vector<uint32_t> blocks(launch.grid[0]);
  std::iota(blocks.begin(), blocks.end(), 0u);
  std::shuffle(blocks.begin(), blocks.end(), random_);
  for (const uint32_t block : blocks) run_block(block);
}

void Machine::run_block(uint32_t block) {
  failure_.clear();
  arrays_.clear();
  std::fill(arena_.begin(), arena_.end(), kGuard);
  arena_used_ = kGuardBytes;
  arrays_.push_back({nullptr, launch_->shared_bytes, take(launch_->shared_bytes)});
  dynamic_ = arrays_.back().data;
  for (int i = 0; i < threads_; ++i) {
    fibre(i)->wait = Wait::kNothing;
    fibre(i)->position = {{static_cast<uint32_t>(i)}, {block}, {launch_->block[0]}, {launch_->grid[0]}};
  }
  // Warps and lanes run in an order of their own, which changes from block to block.
  start_ = static_cast<int>(random_() % static_cast<uint32_t>(threads_));
  backwards_ = random_() % 2 != 0;
  do {
    for (int i = 0; i < threads_ / lanes_ && failure_.empty(); ++i) run_warp(rotated(i, threads_ / lanes_));
  } while (failure_.empty() && release_barrier());
  for (int i = 0; i < threads_ && failure_.empty(); ++i) {
    if (fibre(i)->wait != Wait::kDone) fail(deadlock());
  }
  if (failure_.empty()) check_guards();
  if (failure_.empty()) return;
  // Fibres may hang anywhere in the kernel: the next launch gets new ones.
  for (auto& old : fibres_) munmap(old->first.uc_stack.ss_sp, kStackBytes);
  fibres_.clear();
  throw std::runtime_error(std::string(kernel_->name) + ", block " + std::to_string(block) + ": " + failure_);
}

// The warp's lanes until none can go on without another warp.
void Machine::run_warp(int warp) {
  do {
    for (int i = 0; i < lanes_ && failure_.empty(); ++i) {
      Fibre& one = *fibre(warp * lanes_ + rotated(i, lanes_));
      if (one.wait == Wait::kNothing) resume(one);
    }
  } while (failure_.empty() && (release_exchange(warp) || release_ballot(warp)));
}

// An exchange happens once every lane of a mask waits for it.
bool Machine::release_exchange(int warp) {
  Fibre* lane[64];
  uint64_t waiting = 0;
  for (int i = 0; i < lanes_; ++i) {
    lane[i] = fibre(warp * lanes_ + i);
    waiting |= static_cast<uint64_t>(lane[i]->wait == Wait::kExchange) << i;
  }
  bool any = false;
  while (waiting != 0) {
    const Fibre& leader = *lane[__builtin_ctzll(waiting)];
    const uint64_t mask = leader.mask;
    const bool complete = (waiting & mask) == mask;
    waiting &= ~mask;
    if (!complete) continue;
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
      Fibre& one = *lane[__builtin_ctzll(rest)];
      const int source = __builtin_ctzll(rest) ^ one.distance;
      if (one.mask != mask || one.distance != leader.distance || one.bytes != leader.bytes) {
        fail("an exchange in which " + name_of(leader) + " and " + name_of(one) + " do not ask for the same");
        return false;
      }
      if (source >= lanes_ || (mask >> source & 1) == 0) {
        fail(name_of(one) + " reads a lane that takes no part in the exchange");
        return false;
      }
      std::memcpy(one.result, lane[source]->value, one.bytes);
      one.wait = Wait::kNothing;
    }
    any = true;
  }
  return any;
}

bool Machine::release_ballot(int warp) {
  uint64_t votes = 0;
  for (int lane = 0; lane < lanes_; ++lane) {
    const Fibre& one = *fibre(warp * lanes_ + lane);
    if (one.wait != Wait::kBallot) return false;
    votes |= static_cast<uint64_t>(one.vote) << lane;
  }
  for (int lane = 0; lane < lanes_; ++lane) {
    Fibre& one = *fibre(warp * lanes_ + lane);
    one.votes = votes;
    one.wait = Wait::kNothing;
  }
  return true;
}

// All threads, at one place of the source.
bool Machine::release_barrier() {
  const Fibre& first = *fibre(0);
  for (int i = 0; i < threads_; ++i) {
    const Fibre& one = *fibre(i);
    if (one.wait != Wait::kBarrier || one.line != first.line || std::strcmp(one.file, first.file) != 0) return false;
  }
  for (int i = 0; i < threads_; ++i) fibre(i)->wait = Wait::kNothing;
  return true;
}

std::string Machine::name_of(const Fibre& fibre) const {
  return "thread " + std::to_string(fibre.position.thread.x);
}

// Two threads that wait for different things.
std::string Machine::deadlock() const {
  const auto place = [](const Fibre& one) -> std::string {
    switch (one.wait) {
      case Wait::kBarrier:
        return std::string("waits at the barrier of ") + one.file + ":" + std::to_string(one.line);
      case Wait::kExchange:
        return "waits in an exchange of lanes " + std::to_string(one.mask);
      case Wait::kBallot:
        return "waits in a ballot";
      case Wait::kDone:
        return "has returned";
      case Wait::kNothing:
        break;
    }
    return "runs";
  };
  const std::string first = place(*fibre(0));
  for (int i = 1; i < threads_; ++i) {
    const std::string other = place(*fibre(i));
    if (other != first) return "divergence: thread 0 " + first + ", " + name_of(*fibre(i)) + " " + other;
  }
  return "divergence: every thread " + first;
}

std::mutex one_launch_at_a_time;

// Which kernels there are and which have run, for the test that wants them all: appended as they run.
void record(const char* what, const char* name) {
  const char* const path = std::getenv("CLOVER_SIMT_COVERAGE");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s %s\n", what, name);
    std::fclose(file);
  }
}

void record_all_once() {
  static const bool recorded = [] {
    for (const KernelEntry* entry = first_entry; entry != nullptr; entry = entry->next) record("exists", entry->name);
    return true;
  }();
  static_cast<void>(recorded);
}

}  // namespace

KernelEntry::KernelEntry(const char* name, size_t param_bytes, Call call)
    : name(name), param_bytes(param_bytes), call(call), next(first_entry) {
  first_entry = this;
}

void launch(const native::Launch* launches, int count, int lanes) {
  const std::lock_guard<std::mutex> lock(one_launch_at_a_time);
  record_all_once();
  for (int i = 0; i < count; ++i) {
    const native::Launch& one = launches[i];
    for (const KernelEntry* entry = first_entry; entry != nullptr; entry = entry->next) {
      if (std::strcmp(entry->name, one.kernel) == 0 && !entry->executed) record("executed", one.kernel);
    }
    machine().run(one, lanes);
  }
}

void barrier(const char* file, int line) {
  Fibre& own = machine().current();
  own.file = file, own.line = line;
  own.wait = Wait::kBarrier;
  machine().suspend();
}

uint64_t ballot(bool yes) {
  Fibre& own = machine().current();
  own.vote = yes;
  own.wait = Wait::kBallot;
  machine().suspend();
  return own.votes;
}

void need_aligned(const void* address, int bytes) {
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) != 0)
    machine().fail("a vector of " + std::to_string(bytes) + " bytes at an address that is no multiple of that");
}

void exchange(uint64_t mask, int distance, void* value, size_t bytes) {
  Fibre& own = machine().current();
  if (bytes > sizeof(own.value)) std::abort();  // a wider type needs a wider buffer
  const int lane = static_cast<int>(own.position.thread.x) % warp_size;
  if ((mask >> lane & 1) == 0) machine().fail("a lane that is not in its own mask");
  std::memcpy(own.value, value, bytes);
  own.mask = mask, own.distance = distance, own.bytes = bytes;
  own.wait = Wait::kExchange;
  machine().suspend();
  std::memcpy(value, own.result, bytes);
}

void* shared_array(const void* key, size_t bytes) {
  return machine().shared_array(key, bytes);
}
unsigned char* dynamic_shared() {
  return machine().dynamic_shared();
}

}  // namespace clover::simt
