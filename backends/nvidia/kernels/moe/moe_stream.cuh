// The mixture of experts for few tokens per expert: a stream of weights that never stops.
//
// One persistent block per multiprocessor: eight warps stream and multiply, one hands out work, three finish results.
// The unit of work is a ticket: some rows of one entry's w13, some rows of its w2, or some columns of y. Tickets are
// numbered in the order of their dependencies and taken by an atomic counter, so whoever waits, waits for tickets that
// are already in the hands of running blocks: no block needs to be resident for another to advance. A ticket is worked
// off in steps, each with one result; results go to the finishing warps in turns, because making a result visible to
// other blocks takes longer than computing it.
//
// Weights are the 16-row side of the matrix instruction and tokens its 8-column side, so a few waste little. A warp
// takes 16 rows times up to 256 of the inner dimension (a unit, 8 KB), copied asynchronously 64 elements of each row at
// a time, in whole 128-byte lines. In the products lane 4 g + i has 16 bytes, 8 inner elements, of rows g and g + 8 at
// once: the inner dimension is permuted alike for weights and tokens, which no sum sees. The ring is a warp's own, so
// no barrier of the block stands in its way; it runs ahead across tickets and across the two products: when the second
// must wait for results of the first, its weights are on the way already. The tokens' side travels in the same ring (a
// plain load would queue behind all of it) and stays in registers for as long as it serves.
#pragma once

#include "backends/nvidia/kernels/moe/moe_common.cuh"

namespace clover::nvidia::moe {

constexpr int kStreamWarps = 8;
constexpr int kFinishers = 3;  // warps, and buffers of results
static_assert(kStreamThreads == (kStreamWarps + 1 + kFinishers) * 32);
constexpr int kChunks = 8;  // of 32 inner elements, in a unit
constexpr int kColumns = kStreamTokens / 8;
constexpr int kSlots = 8;                // tickets known to a block at a time
constexpr int kAhead = 5;                // tickets taken ahead of the last finished one; the ring reaches 3 ahead
constexpr int kPairs = kChunks / 2;      // chunks go in pairs: the two halves of 128-byte lines
constexpr uint32_t kWeightBytes = 2048;  // of a pair: 16 rows of 128 bytes, the halves of odd rows exchanged
constexpr uint32_t kPairBytes = kWeightBytes + 2 * kColumns * 512;  // then the tokens
static_assert(kStreamWarps * kPairBytes == kStreamPairBytes);

enum TicketKind : int32_t { kEnd, kUp, kDown, kSum };

struct Ticket {
  const void* weights;  // the entry's matrix
  const void* tokens;   // what is multiplied: rows of x or of inner
  int64_t weight_row, token_row;
  int32_t kind, entry, first, count, shared, intermediate;
  int32_t turn;         // of its first step
  int32_t steps;        // results, one after another; each of `blocks` units
  int32_t blocks;       // units along the inner dimension
  int32_t slices_log2;  // warps along the inner dimension
  int32_t slice;        // inner elements of a unit
  int32_t inner;        // the whole inner dimension
  int32_t row, row_step, row_end;
  int32_t row_scale;  // a lane's two rows are row_scale * g and that + row_pair
  int32_t row_pair;
  int32_t rows[kStreamTokens];
};

struct StreamControl {
  uint64_t full[kFinishers], empty[kFinishers];
  int32_t published;             // tickets
  int32_t up_done, down_done;    // every result of the first product is visible, of the second
  int32_t progress[kFinishers];  // each finishing warp's next turn
  Ticket tickets[kSlots];
};
static_assert(sizeof(StreamControl) <= kStreamControlBytes);

// An entry as shared memory holds it.
struct PackedEntry {
  int32_t first;
  uint32_t expert_count;  // expert * 256 + count
};
static_assert(sizeof(PackedEntry) == kStreamEntryBytes && kStreamTokens < 256);

struct StreamShared {
  unsigned char* ring;
  float4* results;  // [kFinishers][kStreamWarps][kColumns][32]
  StreamControl* control;
  PackedEntry* entries;
  uint16_t* order;
};

constexpr int kResultBytes = kStreamWarps * kColumns * 32 * sizeof(float4);
static_assert(kFinishers * kResultBytes == kStreamResultBytes);

template <int kRing>
__device__ __forceinline__ StreamShared carve(unsigned char* base, const MoeParams& p) {
  StreamShared s;
  s.ring = base;
  base += kRing * kStreamPairBytes;
  s.results = reinterpret_cast<float4*>(base);
  base += kFinishers * kResultBytes;
  s.control = reinterpret_cast<StreamControl*>(base);
  s.entries = reinterpret_cast<PackedEntry*>(base + kStreamControlBytes);
  s.order = reinterpret_cast<uint16_t*>(s.entries + p.max_entries);
  return s;
}

// Tickets as a warp sees them.
struct TicketView {
  const StreamControl* control;
  int known = 0;

  __device__ __forceinline__ const Ticket& operator()(int number) {
    while (known <= number) known = ptx::load_shared_acquire(&control->published);
    return control->tickets[number % kSlots];
  }
};

// ---- the warp that hands out tickets ----

template <class T>
struct Clerk {
  const MoeParams& p;
  const StreamShared s;
  const int lane;
  int up_shared, up_each, up_tickets, down_each, down_tickets, sum_tickets;
  int up_target, down_target;
  int claims[2];  // lane 0: the numbers of the next tickets, possibly still on their way
  int published = 0, turn = 0;
  bool past_up = false, up_done = false, down_done = false;

  // The first claims are on their way while the block is set up.
  __device__ Clerk(const MoeParams& params, const StreamShared& shared, bool at_work)
      : p(params), s(shared), lane(threadIdx.x % 32) {
    if (!at_work) return;
    take(claims[0]);
    take(claims[1]);
  }

  __device__ __forceinline__ void take(int& claim) {
    if (lane == 0) claim = atomicAdd(p.head + kTickets, 1);
  }

  __device__ void run(int entries) {
    const int routed = entries - p.shared_entries;
    up_shared = ceil_div(p.shared_intermediate / 8, p.group);
    up_each = ceil_div(p.intermediate / 8, p.group);
    up_tickets = p.shared_entries * up_shared + routed * up_each;
    down_each = ceil_div(p.hidden, p.down_rows);
    down_tickets = entries * down_each;
    sum_tickets = ceil_div(p.tokens * ceil_div(p.hidden, 256), kStreamWarps);
    up_target = p.shared_entries * (p.shared_intermediate / 8) + routed * (p.intermediate / 8);
    down_target = entries * down_each * (p.down_rows / 16);
    for (;;) {
      if (published >= kAhead) await(published - kAhead);
      if (!publish(claims[0])) break;
      if (published >= kAhead) await(published - kAhead);
      if (!publish(claims[1])) break;
    }
    while (!down_done) watch();
  }

  // Looks once at how far all blocks are, and raises the block's flags.
  __device__ __forceinline__ void watch() {
    if (!up_done && ptx::load_acquire(p.head + kUpDone) >= up_target) {
      up_done = true;
      if (lane == 0) ptx::store_shared_release(&s.control->up_done, 1);
    }
    if (up_done && !down_done && ptx::load_acquire(p.head + kDownDone) >= down_target) {
      down_done = true;
      if (lane == 0) ptx::store_shared_release(&s.control->down_done, 1);
    }
  }

  // Until every step of the ticket is finished, and its slot with it.
  __device__ __forceinline__ void await(int number) {
    const Ticket& t = s.control->tickets[number % kSlots];
    const int turns = t.turn + t.steps;
    for (;;) {
      int progress = 0x7fffffff;
#pragma unroll
      for (int i = 0; i < kFinishers; ++i) {
        progress = min(progress, ptx::load_shared_acquire(&s.control->progress[i]));
      }
      if (progress >= turns) return;
      if (past_up) watch();
    }
  }

  // Describes the claimed ticket in the next slot and makes it visible; false when it is the last one.
  __device__ bool publish(int& claim) {
    int number = __shfl_sync(~0u, claim, 0);
    take(claim);
    Ticket& t = s.control->tickets[published % kSlots];
    int kind, entry = 0, part = 0, steps = 0;
    if (number < up_tickets) {
      kind = kUp;
      const int in_shared = p.shared_entries * up_shared;
      if (number < in_shared) {
        entry = number / up_shared, part = number % up_shared;
      } else {
        number -= in_shared;
        entry = number / up_each, part = number % up_each;
        entry += p.shared_entries;
      }
    } else if ((number -= up_tickets) < down_tickets) {
      kind = kDown;
      entry = number / down_each, part = number % down_each;
    } else if ((number -= down_tickets) < sum_tickets) {
      kind = kSum;
      part = number;
      steps = 1;
    } else {
      kind = kEnd;
    }
    if (kind == kUp || kind == kDown) {
      const PackedEntry e = s.entries[entry];
      const int count = e.expert_count % 256;
      const Expert<T> expert = find_expert<T>(p, e.expert_count / 256);
      if (lane < kStreamTokens) {
        int row = -1;
        if (lane < count) {
          row = e.first + lane;
          if (kind == kUp && !expert.shared) row = s.order[row] / p.top_k;
        }
        t.rows[lane] = row;
      }
      const int slices_log2 = kind == kUp ? 3 : expert.shared ? p.shared_down_slices_log2 : p.down_slices_log2;
      const int slices = 1 << slices_log2;
      const int inner = kind == kUp ? p.hidden : expert.intermediate;
      const int slice = min(kChunks * 32, ceil_div(inner, slices * 32) * 32);
      steps = kind == kUp ? min(p.group, expert.intermediate / 8 - part * p.group) : p.down_rows / (128 >> slices_log2);
      if (lane == 0) {
        t.entry = entry, t.first = e.first, t.count = count, t.shared = expert.shared;
        t.intermediate = expert.intermediate;
        t.inner = inner, t.slices_log2 = slices_log2, t.slice = slice, t.blocks = ceil_div(inner, slices * slice);
        if (kind == kUp) {
          t.weights = expert.w13, t.weight_row = expert.w13_row;
          t.tokens = p.x, t.token_row = p.x_row;
          t.row = part * p.group * 8, t.row_step = 8, t.row_end = expert.intermediate;
          t.row_scale = 1, t.row_pair = expert.intermediate;  // a gate row and its up row
        } else {
          t.weights = expert.w2, t.weight_row = expert.w2_row;
          t.tokens = expert.shared ? p.shared_inner : p.inner, t.token_row = expert.intermediate;
          t.row = part * p.down_rows, t.row_step = 128 >> slices_log2, t.row_end = p.hidden;
          t.row_scale = 2, t.row_pair = 1;  // neighbours, so that two results are stored at once
        }
      }
    } else if (lane == 0) {
      t.row = part;
    }
    if (lane == 0) t.kind = kind, t.turn = turn, t.steps = steps;
    past_up = kind != kUp;
    turn += steps;
    __syncwarp();
    ++published;
    if (lane == 0) ptx::store_shared_release(&s.control->published, published);
    return kind != kEnd;
  }
};

// ---- the warps that finish results ----

template <class T>
struct Finisher {
  const MoeParams& p;
  const StreamShared s;
  const int lane, index;
  TicketView ticket;
  int unsignalled = 0;  // stored results of the current kind

  __device__ Finisher(const MoeParams& params, const StreamShared& shared)
      : p(params),
        s(shared),
        lane(threadIdx.x % 32),
        index(threadIdx.x / 32 - kStreamWarps - 1),
        ticket{shared.control} {}

  // Tells the other blocks how many results are stored. Every release holds up the whole multiprocessor's stores, so a
  // warp makes one when its work of a kind is over: nobody can go on before everybody's is.
  __device__ __forceinline__ void signal(int kind) {
    if (unsignalled == 0) return;
    __syncwarp();
    if (lane == 0) ptx::add_release(p.head + (kind == kUp ? kUpDone : kDownDone), unsignalled);
    unsignalled = 0;
  }

  // Adds the eight slices of gate and up, and stores silu(gate) * up.
  __device__ void finish_up(const Ticket& t, int step, const float4* results) {
    T* inner = static_cast<T*>(t.shared ? p.shared_inner : p.inner);
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
      if (column * 8 >= t.count) break;
      float4 sum = results[column * 32 + lane];
#pragma unroll
      for (int warp = 1; warp < kStreamWarps; ++warp) {
        const float4 part = results[(warp * kColumns + column) * 32 + lane];
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
      const int token = column * 8 + lane % 4 * 2;
      T* out = inner + static_cast<int64_t>(t.first + token) * t.intermediate + t.row + step * 8 + lane / 4;
      if (token < t.count) out[0] = from_float<T>(silu(sum.x) * sum.z);
      if (token + 1 < t.count) out[t.intermediate] = from_float<T>(silu(sum.y) * sum.w);
    }
    unsignalled += 1;
  }

  __device__ void finish_down(const Ticket& t, int step, const float4* results) {
    const int slices = 1 << t.slices_log2, tiles = kStreamWarps >> t.slices_log2;
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
      if (column * 8 >= t.count) break;
      const int token = column * 8 + lane % 4 * 2;
      float* out[2] = {nullptr, nullptr};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (token + i >= t.count) continue;
        const int position = t.first + token + i;
        out[i] = t.shared ? p.shared_partial + static_cast<int64_t>(position) * p.hidden
                          : p.partial + static_cast<int64_t>(s.order[position]) * p.hidden;
      }
      for (int tile = 0; tile < tiles; ++tile) {
        float4 sum = results[(tile * slices * kColumns + column) * 32 + lane];
        for (int slice = 1; slice < slices; ++slice) {
          const float4 part = results[((tile * slices + slice) * kColumns + column) * 32 + lane];
          sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        const int row = t.row + step * t.row_step + tile * 16 + lane / 4 * 2;
        if (row >= p.hidden) continue;
        if (out[0]) *reinterpret_cast<float2*>(out[0] + row) = make_float2(sum.x, sum.z);
        if (out[1]) *reinterpret_cast<float2*>(out[1] + row) = make_float2(sum.y, sum.w);
      }
    }
    unsignalled += tiles;
  }

  __device__ void run() {
    const float4* results = s.results + index * (kResultBytes / sizeof(float4));
    int number = 0, phase = 0, kind = kUp;
    for (int turn = index;; turn += kFinishers, phase ^= 1) {
      while (ticket(number).kind != kEnd && turn >= ticket(number).turn + ticket(number).steps) ++number;
      const Ticket& t = ticket(number);
      if (t.kind != kind) signal(kind);
      kind = t.kind;
      if (kind == kEnd) break;
      ptx::barrier_wait(&s.control->full[index], phase);
      if (kind == kUp) finish_up(t, turn - t.turn, results);
      if (kind == kDown) finish_down(t, turn - t.turn, results);
      __syncwarp();
      if (lane == 0) {
        ptx::barrier_arrive(&s.control->empty[index]);
        ptx::store_shared_release(&s.control->progress[index], turn + kFinishers);
      }
    }
  }
};

// ---- the streaming warps ----

// A place in the sequence of units that a block works through.
struct Place {
  int ticket = 0, step = 0, block = 0;

  __device__ __forceinline__ bool advance(const Ticket& t) {  // true when it enters the next ticket
    if (++block < t.blocks) return false;
    block = 0;
    if (++step < t.steps) return false;
    step = 0;
    ++ticket;
    return true;
  }
};

// Whose tokens a warp's registers hold.
struct Origin {
  int kind, entry, blocks;

  // Whether a unit of this ticket needs others.
  __device__ __forceinline__ bool replaced_by(const Ticket& t) const {
    return kind != t.kind || entry != t.entry || blocks > 1;
  }
};

template <class T, int kRing>  // pairs of chunks in the ring
struct Streamer {
  const MoeParams& p;
  const StreamShared s;
  const int warp, lane;
  const uint32_t ring, ring_end;  // the warp's own
  const uint64_t policy;
  TicketView ticket;
  int buffer = 0, phase = 0;  // of the next result
  bool up_done = false;

  // Where the ring is filled next.
  Place fetch_place;
  bool fetch_over = false, fetch_there[2] = {};
  int fetch_columns = 0;  // of tokens; none where registers serve or the tokens are not there yet
  Origin fetch_origin = {kEnd, -1, 0};
  const T* fetch_row = nullptr;  // lane l copies piece l % 8 of rows l / 8, l / 8 + 4, and of the rows paired with them
  int64_t fetch_four = 0, fetch_pair = 0;
  int fetch_left = 0;
  int token_left = 0;
  const T* token_rows[kColumns];
  bool token_there[kColumns];

  uint4 tokens[kColumns][kChunks];

  __device__ Streamer(const MoeParams& params, const StreamShared& shared)
      : p(params),
        s(shared),
        warp(threadIdx.x / 32),
        lane(threadIdx.x % 32),
        ring(ptx::shared_address(shared.ring) + threadIdx.x / 32 * (kRing * kPairBytes)),
        ring_end(ring + kRing * kPairBytes),
        policy(ptx::evict_first_policy()),
        ticket{shared.control} {}

  // A unit's first inner element, and the end of it.
  __device__ __forceinline__ int unit_slice(const Ticket& t, int block) const {
    return (block << t.slices_log2) + (warp & ((1 << t.slices_log2) - 1));
  }
  __device__ __forceinline__ int unit_start(const Ticket& t, int block) const { return unit_slice(t, block) * t.slice; }
  __device__ __forceinline__ int unit_end(const Ticket& t, int block) const {
    return min(t.inner, (unit_slice(t, block) + 1) * t.slice);
  }

  __device__ __forceinline__ bool tokens_exist(const Ticket& t) {
    if (t.kind == kUp || up_done) return true;
    return up_done = __all_sync(~0u, ptx::load_shared_acquire(&s.control->up_done) != 0);
  }

  __device__ __forceinline__ void aim_tokens(const Ticket& t, int block) {
    const int first = unit_start(t, block) + lane % 4 * 8;
    const T* start = static_cast<const T*>(t.tokens) + first;
    token_left = unit_end(t, block) - first;
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
      const int row = t.rows[column * 8 + lane / 4];
      token_there[column] = row >= 0;
      token_rows[column] = start + max(row, 0) * t.token_row;
    }
  }

  // Points at the unit at fetch_place.
  __device__ __forceinline__ void aim_fetch() {
    const Ticket& t = ticket(fetch_place.ticket);
    fetch_columns = 0;
    fetch_over = t.kind != kUp && t.kind != kDown;
    if (fetch_over) return;
    const int row = t.row + fetch_place.step * t.row_step + (warp >> t.slices_log2) * 16 + lane / 8 * t.row_scale;
    const int first = unit_start(t, fetch_place.block) + lane % 8 * 8;
    fetch_row = static_cast<const T*>(t.weights) + row * t.weight_row + first;
    fetch_four = 4 * t.row_scale * t.weight_row;
    fetch_pair = t.row_pair * t.weight_row;
    fetch_there[0] = row < t.row_end;  // row counts are multiples of 8, so a row and its pair exist together
    fetch_there[1] = row + 4 * t.row_scale < t.row_end;
    fetch_left = unit_end(t, fetch_place.block) - first;
    if (fetch_origin.replaced_by(t) && tokens_exist(t)) {
      fetch_columns = t.count > 8 ? 2 : 1;
      aim_tokens(t, fetch_place.block);
    }
    fetch_origin = {t.kind, t.entry, t.blocks};
  }

  __device__ __forceinline__ void advance_fetch() {
    if (fetch_over) return;
    fetch_place.advance(ticket(fetch_place.ticket));
    aim_fetch();
  }

  __device__ __forceinline__ void fetch(int pair, uint32_t to) {
    if (!fetch_over) {
      const bool inside = pair * 64 < fetch_left;
      const T* from = fetch_row + pair * 64;
      // Rows l / 8 and l / 8 + 4 k are odd together.
      const uint32_t line = to + lane / 8 * 128 + ((lane % 8) ^ (lane / 8 % 2 * 4)) * 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        ptx::copy_async_16_streamed(line + i * 512, from + (i % 2 ? fetch_four : 0) + (i / 2 ? fetch_pair : 0),
                                    inside && fetch_there[i % 2], policy);
      }
#pragma unroll
      for (int chunk = 0; chunk < 2; ++chunk) {
        const int at = (pair * 2 + chunk) * 32;
#pragma unroll
        for (int column = 0; column < kColumns; ++column) {
          if (column >= fetch_columns) continue;
          ptx::copy_async_16_to(to + kWeightBytes + (chunk * kColumns + column) * 512 + lane * 16,
                                token_rows[column] + at, at < token_left && token_there[column]);
        }
      }
    }
    ptx::copy_async_commit();
  }

  // The tokens of a unit that was fetched before they existed.
  __device__ __forceinline__ void load_tokens(const Ticket& t, int block) {
    while (!tokens_exist(t)) {
    }
    const int first = unit_start(t, block) + lane % 4 * 8, left = unit_end(t, block) - first;
    const T* start = static_cast<const T*>(t.tokens) + first;
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
      const int row = t.rows[column * 8 + lane / 4];
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        tokens[column][chunk] =
            ptx::load_global_16(start + max(row, 0) * t.token_row + chunk * 32, row >= 0 && chunk * 32 < left);
      }
    }
  }

  // Until the buffer's last result is finished.
  __device__ __forceinline__ void await_buffer() { ptx::barrier_wait(&s.control->empty[buffer], phase ^ 1); }
  __device__ __forceinline__ void hand_over() {
    __syncwarp();
    if (lane == 0) ptx::barrier_arrive(&s.control->full[buffer]);
    if (++buffer == kFinishers) buffer = 0, phase ^= 1;
  }

  __device__ __forceinline__ void sum_step(const Ticket& t) {
    const int blocks = ceil_div(p.hidden, 256), piece = t.row * kStreamWarps + warp;
    if (piece >= p.tokens * blocks) return;
    sum_routes<T>(p, piece / blocks, piece % blocks, lane, [this] {
      while (!ptx::load_shared_acquire(&s.control->down_done)) {
      }
    });
  }

  __device__ void run() {
    // The ring is no whole number of units. Bit i: the unit i after the current one brings its tokens along.
    uint32_t brought = 0;
#pragma unroll
    for (int i = 0; i < kRing; ++i) {
      if (i % kPairs == 0) {
        if (i == 0)
          aim_fetch();
        else
          advance_fetch();
        brought |= (fetch_columns > 0 ? 1u : 0u) << (i / kPairs);
      }
      fetch(i % kPairs, ring + i * kPairBytes);
    }
    Place place;
    Origin origin = {kEnd, -1, 0};
    uint32_t at = ring;
    float sums[kColumns][4] = {};
    for (;;) {
      const Ticket& t = ticket(place.ticket);
      if (t.kind == kSum || t.kind == kEnd) break;
      const bool staged = brought & 1, second = t.count > 8;
      if (!staged && origin.replaced_by(t)) load_tokens(t, place.block);
      origin = {t.kind, t.entry, t.blocks};

#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        ptx::copy_async_wait<kRing - 1>();
        __syncwarp();  // what the other lanes copied is there as well
#pragma unroll
        for (int chunk = pair * 2; chunk < pair * 2 + 2; ++chunk) {
          if (staged) {
            const uint32_t from = at + kWeightBytes + chunk % 2 * (kColumns * 512) + lane * 16;
            tokens[0][chunk] = ptx::load_shared_16(from);
            if (second) tokens[1][chunk] = ptx::load_shared_16(from + 512);
          }
          const uint32_t piece = at + lane / 4 * 128 + ((chunk % 2 * 4 + lane % 4) ^ (lane / 4 % 2 * 4)) * 16;
          const uint4 low = ptx::load_shared_16(piece), high = ptx::load_shared_16(piece + 1024);
          const uint32_t a0[4] = {low.x, high.x, low.y, high.y}, a1[4] = {low.z, high.z, low.w, high.w};
          mma<T>(sums[0], a0, tokens[0][chunk].x, tokens[0][chunk].y);
          mma<T>(sums[0], a1, tokens[0][chunk].z, tokens[0][chunk].w);
          if (second) {
            mma<T>(sums[1], a0, tokens[1][chunk].x, tokens[1][chunk].y);
            mma<T>(sums[1], a1, tokens[1][chunk].z, tokens[1][chunk].w);
          }
        }
        __syncwarp();  // every lane has read the pair, which is filled anew
        if ((pair + kRing) % kPairs == 0) {
          advance_fetch();
          brought |= (fetch_columns > 0 ? 1u : 0u) << ((pair + kRing) / kPairs);
        }
        fetch((pair + kRing) % kPairs, at);
        at = at + kPairBytes == ring_end ? ring : at + kPairBytes;
      }
      brought >>= 1;

      const int step = place.step;
      if (place.advance(t) || place.step != step) {
        await_buffer();
        float4* results = s.results + ((buffer * kStreamWarps + warp) * kColumns) * 32 + lane;
        results[0] = make_float4(sums[0][0], sums[0][1], sums[0][2], sums[0][3]);
        if (second) results[32] = make_float4(sums[1][0], sums[1][1], sums[1][2], sums[1][3]);
        hand_over();
#pragma unroll
        for (int column = 0; column < kColumns; ++column) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[column][i] = 0.0f;
        }
      }
    }
    ptx::copy_async_wait<0>();
    for (;; ++place.ticket) {  // tickets for sums come last
      const Ticket& t = ticket(place.ticket);
      if (t.kind == kEnd) break;
      sum_step(t);
      await_buffer();
      hand_over();
    }
  }
};

template <class T, int kRing>
__device__ __forceinline__ void stream(const MoeParams& p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  const StreamShared s = carve<kRing>(shared_bytes, p);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kFinishers; ++i) {
      ptx::barrier_init(&s.control->full[i], kStreamWarps);
      ptx::barrier_init(&s.control->empty[i], 1);
      s.control->progress[i] = i;
    }
    s.control->published = s.control->up_done = s.control->down_done = 0;
  }
  const int warp = threadIdx.x / 32;
  Clerk<T> clerk(p, s, warp == kStreamWarps);
  const int entries = p.head[kEntries];
  for (int i = threadIdx.x; i < p.max_entries; i += blockDim.x) {  // past `entries` lies nothing that is looked at
    const MoeEntry e = p.entries[i];
    s.entries[i] = {e.first, static_cast<uint32_t>(e.expert) * 256 + e.count};
  }
  for (int i = threadIdx.x; i < p.tokens * p.top_k; i += blockDim.x) s.order[i] = static_cast<uint16_t>(p.order[i]);
  __syncthreads();
  if (warp < kStreamWarps) {
    Streamer<T, kRing>(p, s).run();
  } else if (warp == kStreamWarps) {
    clerk.run(entries);
  } else {
    Finisher<T>(p, s).run();
  }
}

}  // namespace clover::nvidia::moe
