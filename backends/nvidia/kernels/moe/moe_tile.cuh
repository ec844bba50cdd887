// The mixture of experts for many tokens per expert: two grouped matrix products.
//
// A job is some rows of an expert's weights times up to kTokens of its tokens; jobs are dealt out round robin to
// persistent blocks, whose asynchronous copies run kStages deep and across jobs. Weights are the 16-row side of the
// matrix instruction here as well, so a job costs what its tokens cost, in steps of 16 (mma.sync) or 64 (wgmma).
// In w13's jobs every 16 rows are 8 gate rows and their 8 up rows, which brings a value's gate and up into the same
// thread; in w2's jobs they are the 8 even and the 8 odd ones, which brings neighbours into the same thread. A block of
// 256 threads has jobs of 128 rows, one of 512 threads jobs of 256.
#pragma once

#include "backends/nvidia/kernels/moe/moe_common.cuh"
#include "backends/nvidia/kernels/moe/wgmma.cuh"

namespace clover::nvidia::moe {

constexpr int kTileInner = 64;  // 128 bytes: one row of a stage, its 16-byte pieces exchanged by row % 8

struct Job {
  MoeEntry entry;
  int part;   // which rows
  int steps;  // along the inner dimension
};

// kOverlap: a stage's product (wgmma) may run on during the next stage's.
template <class T, int kThreads, int kTokens, int kStages, bool kWgmma, bool kOverlap, bool kDown>
class TileProduct {
 public:
  __device__ explicit TileProduct(const MoeParams& params, unsigned char* shared)
      : p_(params), shared_(shared), thread_(threadIdx.x), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {
    const int entries = p_.head[kEntries];
    shared_parts_ = ceil_div(kDown ? p_.hidden : p_.shared_intermediate, kDown ? kRows : kRows / 2);
    parts_ = ceil_div(kDown ? p_.hidden : p_.intermediate, kDown ? kRows : kRows / 2);
    shared_jobs_ = p_.shared_entries * shared_parts_;
    jobs_ = shared_jobs_ + (entries - p_.shared_entries) * parts_;
  }

  __device__ void run() {
    load_job_ = blockIdx.x;
    aim();
#pragma unroll 1
    for (int stage = 0; stage < kDistance; ++stage) load(stage);
    int slot = 0, load_slot = kDistance;
#pragma unroll 1
    for (int job = blockIdx.x; job < jobs_; job += gridDim.x) {
      const Job now = describe(job);
      clear();
#pragma unroll 1
      for (int step = 0; step < now.steps; ++step) {
        ptx::copy_async_wait<kDistance - 1>();
        if constexpr (kWgmma) ptx::fence_async_proxy();
        __syncthreads();
        multiply(slot, now.entry.count);
        load(load_slot);
        if constexpr (kWgmma) ptx::wgmma_wait<kOverlap ? 1 : 0>();
        slot = slot + 1 == kStages ? 0 : slot + 1;
        load_slot = load_slot + 1 == kStages ? 0 : load_slot + 1;
      }
      if constexpr (kWgmma) finish_products();
      store(now);
    }
    ptx::copy_async_wait<0>();
  }

 private:
  // A stage's memory is free again one barrier after its product is over.
  static constexpr int kDistance = kOverlap ? kStages - 2 : kStages - 1;
  static constexpr int kRows = kThreads / 2;
  static constexpr int kLines = kThreads / 8;  // rows copied at a time, eight threads a row
  static constexpr uint32_t kWeightBytes = kRows * 128;
  static constexpr uint32_t kStageBytes = kWeightBytes + kTokens * 128;
  static constexpr int kTokenRows = kTokens / kLines;  // rows of tokens that one thread copies its piece of
  static constexpr int kSums = kTokens / 2;            // 64 rows by kTokens, or 32 rows by kTokens / 2 (mma.sync)

  __device__ __forceinline__ Job describe(int job) const {
    Job j;
    int entry;
    if (job < shared_jobs_) {
      entry = job / shared_parts_, j.part = job % shared_parts_;
    } else {
      const int routed = job - shared_jobs_;
      entry = routed / parts_, j.part = routed % parts_;
      entry += p_.shared_entries;
    }
    const int4 words = __ldg(reinterpret_cast<const int4*>(p_.entries) + entry);
    j.entry = {words.x, words.y, words.z, 0};
    const bool shared = j.entry.expert == p_.experts;
    const int inner = !kDown ? p_.hidden : shared ? p_.shared_intermediate : p_.intermediate;
    j.steps = ceil_div(inner, kTileInner);
    return j;
  }

  // Points the copies at the first step of load_job_.
  __device__ __forceinline__ void aim() {
    load_step_ = 0;
    if (load_job_ >= jobs_) return;
    const Job j = describe(load_job_);
    const Expert<T> expert = find_expert<T>(p_, j.entry.expert);
    load_steps_ = j.steps;
    const int line = thread_ / 8, column = thread_ % 8 * 8;
    if constexpr (kDown) {
      weight_line_ = j.part * kRows + line / 16 * 16 + line % 8 * 2 + line / 8 % 2;
      weight_end_ = p_.hidden;
      weights_ = expert.w2 + weight_line_ * expert.w2_row + column;
      weight_jump_ = kLines * expert.w2_row;
      tokens_ = static_cast<const T*>(expert.shared ? p_.shared_inner : p_.inner) + column;
      token_row_ = expert.intermediate;
      inner_ = expert.intermediate - column;
    } else {
      weight_line_ = j.part * (kRows / 2) + line / 16 * 8 + line % 8;
      weight_end_ = expert.intermediate;
      weights_ = expert.w13 + (weight_line_ + (line % 16 < 8 ? 0 : expert.intermediate)) * expert.w13_row + column;
      weight_jump_ = kLines / 2 * expert.w13_row;
      tokens_ = static_cast<const T*>(p_.x) + column;
      token_row_ = p_.x_row;
      inner_ = p_.hidden - column;
    }
    load_tokens_ = (j.entry.count + 63) / 64 * 64;
#pragma unroll
    for (int i = 0; i < kTokenRows; ++i) {
      const int token = line + i * kLines;
      rows_[i] = -1;
      if (token >= j.entry.count) continue;
      rows_[i] = j.entry.first + token;
      if (!kDown && !expert.shared) rows_[i] = __ldg(p_.order + rows_[i]) / p_.top_k;
    }
  }

  // Starts the copies of the next stage, if any job is left, and steps on.
  __device__ __forceinline__ void load(int slot) {
    if (load_job_ < jobs_) {
      const int line = thread_ / 8, piece = (thread_ % 8) ^ (line % 8);
      const uint32_t to = ptx::shared_address(shared_) + slot * kStageBytes + line * 128 + piece * 16;
      const int at = load_step_ * kTileInner;
      const bool inside = at < inner_;
#pragma unroll
      for (int i = 0; i < kRows / kLines; ++i) {
        const bool there = inside && weight_line_ + i * (kDown ? kLines : kLines / 2) < weight_end_;
        ptx::copy_async_16_streamed(to + i * kLines * 128, weights_ + i * weight_jump_ + at, there, policy_);
      }
#pragma unroll
      for (int i = 0; i < kTokenRows; ++i) {
        if (i * kLines >= load_tokens_) continue;
        ptx::copy_async_16_to(to + kWeightBytes + i * kLines * 128, tokens_ + rows_[i] * token_row_ + at,
                              inside && rows_[i] >= 0);
      }
      if (++load_step_ == load_steps_) {
        load_job_ += gridDim.x;
        aim();
      }
    }
    ptx::copy_async_commit();
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums_[i] = 0.0f;
  }

  __device__ __forceinline__ void multiply(int slot, int count) {
    const uint32_t weights = ptx::shared_address(shared_) + slot * kStageBytes, tokens = weights + kWeightBytes;
    if constexpr (kWgmma) {
      const uint64_t a = ptx::wgmma_descriptor(weights + warp_ / 4 * 8192), b = ptx::wgmma_descriptor(tokens);
      ptx::wgmma_fence();
      if constexpr (kTokens == 64) {
        multiply_groups<64, 0>(a, b);
      } else if (count <= 64) {
        multiply_groups<64, 0>(a, b);
      } else if (count <= 128) {
        multiply_groups<128, 0>(a, b);
      } else {
        multiply_groups<128, 64>(a, b);
      }
      ptx::wgmma_commit();
    } else {
      const int row0 = warp_ % 4 * 32, token0 = warp_ / 4 * (kTokens / 2);
      if (token0 >= count) return;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        uint32_t a[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int row = row0 + i * 16 + lane_ % 16;
          ptx::load_matrices(a[i], weights + row * 128 + (((k * 2 + lane_ / 16) ^ (row % 8)) * 16));
        }
#pragma unroll
        for (int j = 0; j < kTokens / 32; ++j) {
          if (token0 + j * 16 >= count) break;
          uint32_t b[4];
          const int row = token0 + j * 16 + lane_ % 8 + lane_ / 16 * 8;
          ptx::load_matrices(b, tokens + row * 128 + (((k * 2 + lane_ / 8 % 2) ^ (row % 8)) * 16));
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float* sums = sums_ + i * (kSums / 2) + j * 8;
            mma<T>(reinterpret_cast<float (&)[4]>(sums[0]), a[i], b[0], b[1]);
            mma<T>(reinterpret_cast<float (&)[4]>(sums[4]), a[i], b[2], b[3]);
          }
        }
      }
    }
  }

  // Nothing that reads the sums may move ahead of the wait.
  __device__ __forceinline__ void finish_products() {
    ptx::wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(sums_[i])::"memory");
  }

  // A stage's products with the first kFirst tokens, and with the kSecond that follow token 128.
  template <int kFirst, int kSecond>
  __device__ __forceinline__ void multiply_groups(uint64_t a, uint64_t b) {
    float (&first)[kFirst / 2] = reinterpret_cast<float (&)[kFirst / 2]>(sums_[0]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {  // 16 inner elements, 32 bytes, each
      if constexpr (kFirst == 64) ptx::Wgmma<T>::n64(first, a + k * 2, b + k * 2);
      if constexpr (kFirst == 128) ptx::Wgmma<T>::n128(first, a + k * 2, b + k * 2);
      if constexpr (kSecond == 64) {
        ptx::Wgmma<T>::n64(reinterpret_cast<float (&)[32]>(sums_[64]), a + k * 2, b + (16384 >> 4) + k * 2);
      }
    }
  }

  __device__ __forceinline__ void store(const Job& job) {
    if constexpr (kWgmma) {
#pragma unroll
      for (int j = 0; j < kTokens / 8; ++j) {
        if (j * 8 < job.entry.count) store_eight(job, warp_, j * 8, sums_ + j * 4);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < kTokens / 16; ++j) {
          const int token = warp_ / 4 * (kTokens / 2) + j * 8;
          if (token < job.entry.count) store_eight(job, warp_ % 4 * 2 + i, token, sums_ + i * (kSums / 2) + j * 4);
        }
      }
    }
  }

  // Sixteen rows (the tile's `band`) by eight tokens.
  __device__ __forceinline__ void store_eight(const Job& job, int band, int token0, const float* sums) {
    const bool shared = job.entry.expert == p_.experts;
    const int token = token0 + lane_ % 4 * 2;
    if constexpr (kDown) {
      // This lane has two neighbouring rows of two tokens; with lane ^ 4 it trades one token's for two rows more.
      const bool odd = lane_ & 4;
      const float sent[2] = {odd ? sums[0] : sums[1], odd ? sums[2] : sums[3]};
      const float kept[2] = {odd ? sums[1] : sums[0], odd ? sums[3] : sums[2]};
      const float got[2] = {__shfl_xor_sync(~0u, sent[0], 4), __shfl_xor_sync(~0u, sent[1], 4)};
      const int own = token + (odd ? 1 : 0);
      const int row = job.part * kRows + band * 16 + lane_ / 8 * 4;
      if (own >= job.entry.count || row >= p_.hidden) return;
      const int position = job.entry.first + own;
      float* out = shared ? p_.shared_partial + static_cast<int64_t>(position) * p_.hidden
                          : p_.partial + static_cast<int64_t>(__ldg(p_.order + position)) * p_.hidden;
      *reinterpret_cast<float4*>(out + row) =
          odd ? make_float4(got[0], got[1], kept[0], kept[1]) : make_float4(kept[0], kept[1], got[0], got[1]);
    } else {
      const int intermediate = shared ? p_.shared_intermediate : p_.intermediate;
      const int row = job.part * (kRows / 2) + band * 8 + lane_ / 4;
      if (row >= intermediate) return;
      T* inner = static_cast<T*>(shared ? p_.shared_inner : p_.inner);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (token + i >= job.entry.count) continue;
        inner[static_cast<int64_t>(job.entry.first + token + i) * intermediate + row] =
            from_float<T>(silu(sums[i]) * sums[2 + i]);
      }
    }
  }

  const MoeParams& p_;
  unsigned char* const shared_;
  const int thread_, warp_, lane_;
  const uint64_t policy_ = ptx::evict_first_policy();
  int shared_parts_, parts_, shared_jobs_, jobs_;
  int load_job_ = 0, load_step_ = 0, load_steps_ = 1, load_tokens_ = 0;
  int weight_line_ = 0, weight_end_ = 0, inner_ = 0;
  const T *weights_ = nullptr, *tokens_ = nullptr;
  int64_t weight_jump_ = 0, token_row_ = 0;
  int rows_[kTokenRows];
  float sums_[kSums];
};

template <class T, int kThreads, int kTokens, int kStages, bool kWgmma, bool kOverlap, bool kDown>
__device__ __forceinline__ void multiply_tiles(const MoeParams& p) {
  extern __shared__ unsigned char shared_bytes[];
  const uint32_t past = ptx::shared_address(shared_bytes) % 1024;  // the exchange pattern repeats every 1024 bytes
  unsigned char* aligned = shared_bytes + (past ? 1024 - past : 0);
  TileProduct<T, kThreads, kTokens, kStages, kWgmma, kOverlap, kDown>(p, aligned).run();
}

}  // namespace clover::nvidia::moe
