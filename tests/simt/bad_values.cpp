// Bad values in index tensors, which a GPU cannot refuse: the sequence, row or route they belong to is absent, all
// others keep their bits, and nothing outside the tensors is touched. Every tensor ends where its memory does, so that
// an access beyond it ends this program.
#include <sys/mman.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/kernels/native/convolution.h"
#include "common/kernels/native/delta_rule.h"
#include "common/kernels/native/elementwise.h"
#include "common/kernels/native/moe.h"
#include "common/kernels/native/preview_gdn.h"
#include "common/kernels/native/routing.h"
#include "simt.hpp"

namespace clover::native {
namespace {

constexpr uint32_t kPoison = 0x7fc0beef;  // a NaN
constexpr int64_t kTokens = 14, kSequences = 3, kSlots = 6;

// Memory whose last byte is followed by a page that nobody may touch.
template <class T>
class Tensor {
 public:
  explicit Tensor(int64_t count) : count_(count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (static_cast<size_t>(count) * sizeof(T) + page - 1) / page * page + 2 * page;
    memory_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED) std::abort();
    mprotect(memory_, page, PROT_NONE);
    mprotect(memory_ + bytes_ - page, page, PROT_NONE);
    data_ = reinterpret_cast<T*>(memory_ + bytes_ - page) - count;
  }
  Tensor(int64_t count, uint32_t seed) : Tensor(count) {
    for (int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      data_[i] = static_cast<T>(static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1.0f);
    }
  }
  explicit Tensor(const std::vector<T>& values) : Tensor(static_cast<int64_t>(values.size())) {
    std::copy(values.begin(), values.end(), data_);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { munmap(memory_, bytes_); }

  T* data() const { return data_; }
  std::vector<uint32_t> bits() const {
    std::vector<uint32_t> words(static_cast<size_t>(count_));
    for (size_t i = 0; i < words.size(); ++i) {
      static_assert(sizeof(T) == 4);
      std::memcpy(&words[i], data_ + i, 4);
    }
    return words;
  }
  void poison() {
    for (int64_t i = 0; i < count_; ++i) std::memcpy(data_ + i, &kPoison, 4);
  }

 private:
  int64_t count_;
  size_t bytes_;
  char* memory_;
  T* data_;
};

// The index tensors of a call; a test spoils one of them.
struct Indices {
  std::vector<int32_t> cu_seqlens{0, 4, 11, 14}, initial{0, 2, 1}, final{3, 4, 5};
  std::vector<int32_t> ids{0, 3, 2, 1, 3, 0, 1, 1, 2, 0, 3, 1, 0, 2}, positions{0, 4, 1, 3, 2, 2, 1};
};

using Bits = std::vector<uint32_t>;

struct Outputs {
  Bits rows;  // of the output, first axis first
  Bits pool;  // of a commit
};

int lanes = 32;

template <class Args, class Plan>
void run(const Args& args, const Plan& plan) {
  Launch launches[16];
  const char* why_not = nullptr;
  const Machine machine{lanes, 0, 1, simt::kSharedBytes};
  const int count = plan(machine, args, launches, 16, &why_not);
  if (count == 0) {
    std::printf("refused: %s\n", why_not == nullptr ? "no launch" : why_not);
    std::exit(1);
  }
  simt::launch(launches, count, lanes);
}

Outputs convolve(const Indices& indices, bool commits) {
  constexpr int64_t kChannels = 24, kTaps = 4;
  const Tensor<float> x(kTokens * kChannels, 1), weight(kChannels * kTaps, 2), pool(kSlots * kChannels * 3, 3);
  const Tensor<int32_t> cu_seqlens(indices.cu_seqlens), initial(indices.initial), final(indices.final);
  Tensor<float> y(kTokens * kChannels);
  y.poison();
  ConvArgs args;
  ConvParams& p = args.call;
  p.x = x.data(), p.x_token = kChannels, p.weight = weight.data(), p.weight_channel = kTaps;
  p.state = pool.data(), p.state_slot = kChannels * 3, p.state_channel = 3;
  p.cu_seqlens = cu_seqlens.data(), p.initial = initial.data(), p.final = commits ? final.data() : nullptr;
  p.y = y.data(), p.y_token = kChannels;
  p.tokens = kTokens, p.channels = kChannels, p.taps = kTaps, p.sequences = kSequences, p.slots = kSlots;
  run(args, commits ? plan_causal_conv1d : plan_preview_conv1d);
  return {y.bits(), pool.bits()};
}

Outputs delta(const Indices& indices, DeltaMode mode) {
  constexpr int64_t kHeads = 2, kKeys = 32, kValues = 48;
  const Tensor<float> q(kTokens * kKeys, 1), k(kTokens * kKeys, 2), v(kTokens * kHeads * kValues, 3);
  const Tensor<float> g(kTokens * kHeads, 4), beta(kTokens * kHeads, 5), pool(kSlots * kHeads * kValues * kKeys, 6);
  const Tensor<int32_t> cu_seqlens(indices.cu_seqlens), initial(indices.initial), final(indices.final);
  Tensor<float> o(kTokens * kHeads * kValues);
  o.poison();
  DeltaArgs args;
  DeltaParams& p = args.call;
  p.q = q.data(), p.q_token = kKeys, p.k = k.data(), p.k_token = kKeys;
  p.v = v.data(), p.v_token = kHeads * kValues, p.v_head = kValues;
  p.o = o.data(), p.o_token = kHeads * kValues, p.o_head = kValues;
  p.g = g.data(), p.g_token = kHeads, p.beta = beta.data(), p.beta_token = kHeads;
  p.state = pool.data(), p.state_slot = kHeads * kValues * kKeys, p.state_head = kValues * kKeys;
  p.state_v = kKeys, p.state_k = 1;
  p.cu_seqlens = cu_seqlens.data(), p.initial = initial.data(), p.final = final.data();
  p.tokens = kTokens, p.slots = kSlots, p.sequences = kSequences;
  p.heads = 1, p.value_heads = kHeads, p.key_dim = kKeys, p.value_dim = kValues;
  p.scale = 0.5f, p.l2norm = 1, p.mode = mode;
  run(args, mode == DeltaMode::kCommit ? plan_gated_delta_rule : plan_preview_gated_delta_rule);
  return {o.bits(), pool.bits()};
}

Outputs layer(const Indices& indices, bool with_norm) {
  constexpr int64_t kHeads = 2, kKeys = 32, kValues = 16, kChannels = 2 * kKeys + kHeads * kValues;
  const Tensor<float> qkv(kTokens * kChannels, 1), a(kTokens * kHeads, 2), b(kTokens * kHeads, 3);
  const Tensor<float> z(kTokens * kHeads * kValues, 4), weight(kChannels * 4, 5),
      conv_pool((kSlots + 1) * kChannels * 3, 6);
  const Tensor<float> A_log(kHeads, 7), dt_bias(kHeads, 8), pool(kSlots * kHeads * kValues * kKeys, 9),
      norm(kValues, 10);
  const Tensor<int32_t> cu_seqlens(indices.cu_seqlens), initial(indices.initial);
  Tensor<float> o(kTokens * kHeads * kValues);
  o.poison();
  PreviewGdnArgs args;
  args.tokens = kTokens, args.sequences = kSequences, args.heads = 1, args.value_heads = kHeads;
  args.key_dim = kKeys, args.value_dim = kValues, args.taps = 4, args.conv_slots = kSlots + 1, args.slots = kSlots;
  args.qkv = qkv.data(), args.qkv_token = kChannels;
  args.a = a.data(), args.a_token = kHeads, args.a_head = 1, args.b = b.data(), args.b_token = kHeads, args.b_head = 1;
  if (with_norm) args.z = z.data(), args.norm_weight = norm.data();
  args.z_token = kHeads * kValues, args.z_head = kValues;
  args.conv_weight = weight.data(), args.weight_channel = 4;
  args.conv_state = conv_pool.data(), args.conv_slot = kChannels * 3, args.conv_channel = 3;
  args.A_log = A_log.data(), args.dt_bias = dt_bias.data();
  args.state = pool.data(), args.state_slot = kHeads * kValues * kKeys, args.state_head = kValues * kKeys;
  args.state_v = kKeys, args.state_k = 1;
  args.cu_seqlens = cu_seqlens.data(), args.initial = initial.data();
  args.o = o.data(), args.o_token = kHeads * kValues, args.o_head = kValues;
  const size_t bytes = preview_gdn_workspace_bytes(args);
  Tensor<uint32_t> workspace(static_cast<int64_t>(bytes / 4));
  args.workspace = workspace.data(), args.workspace_bytes = bytes;
  run(args, plan_preview_gdn);
  return {o.bits(), pool.bits()};
}

Outputs coreset(const Indices& indices, bool largest) {
  constexpr int64_t kExperts = 40, kTopK = 3;
  const Tensor<float> logits(kTokens * kExperts, 1);
  const Tensor<int32_t> cu_seqlens(indices.cu_seqlens);
  Tensor<float> weights(kTokens * kTopK);
  Tensor<int32_t> ids(kTokens * kTopK);
  Tensor<uint32_t> kept(kSequences * kExperts / 4);
  weights.poison(), ids.poison(), kept.poison();
  BlockCoresetArgs args;
  args.routing = {DType::kFloat32, kTokens, kExperts,       kTopK, logits.data(), kExperts,
                  ids.data(),      kTopK,   weights.data(), kTopK, false};
  args.sequences = kSequences, args.cu_seqlens = cu_seqlens.data();
  args.coreset = reinterpret_cast<uint8_t*>(kept.data()), args.coreset_row = kExperts, args.budget = 9;
  args.largest = largest, args.top_p = 0.5;
  const size_t bytes = block_coreset_workspace_bytes(args);
  Tensor<uint32_t> workspace(static_cast<int64_t>(bytes / 4));
  args.workspace = workspace.data(), args.workspace_bytes = bytes;
  run(args, plan_block_coreset);
  return {ids.bits(), kept.bits()};
}

Outputs experts(const Indices& indices) {
  constexpr int64_t kRows = 7, kTopK = 2, kExperts = 4, kHidden = 16, kInner = 8;
  const Tensor<float> x(kRows * kHidden, 1), w13(kExperts * 2 * kInner * kHidden, 2),
      w2(kExperts * kHidden * kInner, 3);
  const Tensor<float> weights(kRows * kTopK, 4);
  const Tensor<int32_t> ids(indices.ids);
  Tensor<float> y(kRows * kHidden);
  FusedMoeArgs args;
  args.tokens = kRows, args.hidden = kHidden, args.intermediate = kInner, args.experts = kExperts, args.top_k = kTopK;
  args.x = x.data(), args.x_row = kHidden;
  args.w13 = w13.data(), args.w13_expert = 2 * kInner * kHidden, args.w13_row = kHidden;
  args.w2 = w2.data(), args.w2_expert = kHidden * kInner, args.w2_row = kInner;
  args.ids = ids.data(), args.ids_row = kTopK, args.weights = weights.data(), args.weights_row = kTopK;
  args.y = y.data(), args.y_row = kHidden;
  const size_t bytes = fused_moe_workspace_bytes(args);
  Tensor<uint32_t> workspace(static_cast<int64_t>(bytes / 4));
  workspace.poison();
  args.workspace = workspace.data(), args.workspace_bytes = bytes;
  run(args, plan_fused_moe);
  return {y.bits(), {}};
}

Outputs rotate(const Indices& indices) {
  constexpr int64_t kRows = 7, kHeads = 2, kDim = 24, kTable = 5;
  const Tensor<float> q(kRows * kHeads * kDim, 1), k(kRows * kDim, 2), table(kTable * 16, 3);
  const Tensor<int32_t> positions(indices.positions);
  RotaryArgs args;
  RotaryParams& p = args.call;
  p.positions = positions.data(), p.q = q.data(), p.k = k.data(), p.cos_sin = table.data();
  p.q_token = kHeads * kDim, p.q_head = kDim, p.k_token = kDim, p.k_head = kDim, p.table_row = 16;
  p.tokens = kRows, p.q_heads = kHeads, p.k_heads = 1, p.table_rows = kTable, p.half = 8;
  run(args, plan_rotary_embedding);
  return {q.bits(), k.bits()};
}

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("%d lanes: %s\n", lanes, what.c_str());
  ++failures;
}

using Call = std::function<Outputs(const Indices&)>;

// Sequence 1 is absent: its rows are untouched, and all else is as if it had neither slot.
void check_slots(const std::string& name, const Call& call, bool commits) {
  Indices padded;
  padded.initial[1] = padded.final[1] = -1;
  const Outputs legal = call(padded);
  for (const int32_t bad : {static_cast<int32_t>(kSlots), INT_MAX}) {
    for (const bool final : {false, true}) {
      if (final && !commits) continue;
      Indices spoilt;
      (final ? spoilt.final : spoilt.initial)[1] = bad;
      const Outputs outputs = call(spoilt);
      const std::string what = name + ", " + (final ? "final" : "initial") + " slot " + std::to_string(bad);
      const size_t row = outputs.rows.size() / kTokens;
      for (size_t i = 0; i < outputs.rows.size(); ++i) {
        const bool absent = i / row >= 4 && i / row < 11;
        if (outputs.rows[i] == (absent ? kPoison : legal.rows[i])) continue;
        expect(false, what + ": row " + std::to_string(i / row));
        break;
      }
      expect(outputs.pool == legal.pool, what + ": the pool");
    }
  }
}

// Which sequences are absent is not said: here it is enough that the calls return.
void check_sequences(const Call& call) {
  const std::vector<int32_t> bad[] = {{1, 4, 11, 14},           {0, 12, 11, 14},           {0, 4, 11, 15},
                                      {-1, 4, 11, 14},          {0, INT_MAX, 11, 14},      {0, INT_MIN, 11, 14},
                                      {0, 4, INT_MAX, INT_MAX}, {INT_MIN, INT_MIN, 3, 14}, {14, 11, 4, 0}};
  for (const auto& cu_seqlens : bad) {
    Indices spoilt;
    spoilt.cu_seqlens = cu_seqlens;
    call(spoilt);
  }
}

void check_experts() {
  Indices without;
  without.ids[2] = -1;
  const Outputs legal = experts(without);
  for (const int32_t bad : {4, -2, INT_MAX, INT_MIN}) {
    Indices spoilt;
    spoilt.ids[2] = bad;
    expect(experts(spoilt).rows == legal.rows, "fused_moe, id " + std::to_string(bad));
  }
}

void check_positions() {
  const Outputs legal = rotate({});
  for (const int32_t bad : {5, -1, INT_MAX, INT_MIN}) {
    Indices spoilt;
    spoilt.positions[1] = bad;
    const Outputs outputs = rotate(spoilt);
    const Bits before = Tensor<float>(7 * 48, 1).bits();
    const std::string what = "rotary_embedding, position " + std::to_string(bad);
    for (size_t i = 0; i < outputs.rows.size(); ++i) {
      const bool absent = i / 48 == 1;
      if (outputs.rows[i] == (absent ? before[i] : legal.rows[i])) continue;
      expect(false, what);
      break;
    }
  }
}

void check_all() {
  const std::pair<const char*, Call> previews[] = {
      {"preview_conv1d", [](const Indices& i) { return convolve(i, false); }},
      {"preview_gated_delta_rule", [](const Indices& i) { return delta(i, DeltaMode::kBidirectional); }},
      {"preview_gated_delta_rule, block", [](const Indices& i) { return delta(i, DeltaMode::kBlock); }},
      {"preview_gated_delta_rule, causal", [](const Indices& i) { return delta(i, DeltaMode::kCausal); }},
      {"preview_gdn", [](const Indices& i) { return layer(i, true); }},
      {"preview_gdn without norm", [](const Indices& i) { return layer(i, false); }}};
  const std::pair<const char*, Call> commits[] = {
      {"causal_conv1d", [](const Indices& i) { return convolve(i, true); }},
      {"gated_delta_rule", [](const Indices& i) { return delta(i, DeltaMode::kCommit); }}};
  for (const auto& [name, call] : previews) check_slots(name, call, false), check_sequences(call);
  for (const auto& [name, call] : commits) check_slots(name, call, true), check_sequences(call);
  for (const bool largest : {false, true}) {
    check_sequences([largest](const Indices& indices) { return coreset(indices, largest); });
  }
  check_experts();
  check_positions();
}

}  // namespace
}  // namespace clover::native

int main() {
  for (const int size : {32, 64}) {
    clover::native::lanes = size;
    clover::native::check_all();
  }
  std::printf("%d failures\n", clover::native::failures);
  return clover::native::failures == 0 ? 0 : 1;
}
