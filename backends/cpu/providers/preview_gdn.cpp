// preview_gdn: convolution, gating, delta rule and norm of one value head of one block at a time, in FP32 throughout.
// What the heads of a group share, queries and keys, each computes anew; the delta rule costs several times more.
#include "../support/convolution.hpp"
#include "../support/delta.hpp"
#include "../support/gating.hpp"
#include "../support/norm.hpp"
#include "../support/parallel.hpp"
#include "../support/scratch.hpp"
#include "../support/sequences.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

using Args = clover_preview_gdn_args;
using Dims = clover_preview_gdn_dims;

// Scratch of one thread, in floats.
struct Layout {
  int64_t key_row, value_row;
  int64_t conv_q, conv_k, conv_v, reads, size;  // where each part begins, and the end

  explicit Layout(const Dims& dims) : key_row(padded_row(dims.K)), value_row(padded_rows(dims.V)) {
    conv_q = DeltaScratch::floats(dims.K, dims.V);
    conv_k = conv_q + ConvBlock::floats(dims.KC, key_row);
    conv_v = conv_k + ConvBlock::floats(dims.KC, key_row);
    reads = conv_v + ConvBlock::floats(dims.KC, value_row);
    size = reads + dims.T * value_row;
  }
};

template <class T>
class LayerPreview {
 public:
  LayerPreview(const Args& args, const Dims& dims)
      : dims_(dims),
        layout_(dims),
        qkv_(*args.qkv),
        a_(*args.a),
        b_(*args.b),
        conv_weight_(*args.conv_weight),
        conv_bias_(args.conv_bias == nullptr ? nullptr : data_of<const T>(*args.conv_bias)),
        conv_state_(*args.conv_state),
        A_log_(*args.A_log),
        dt_bias_(*args.dt_bias),
        state_(*args.state),
        o_(*args.o),
        z_(args.z),
        norm_weight_(args.norm_weight == nullptr ? nullptr : data_of<const T>(*args.norm_weight)),
        eps_(args.eps),
        scale_(static_cast<float>(args.scale)),
        read_(static_cast<PreviewRead>(args.read)) {}

  void run_head(const Sequence& sequence, int64_t slot, int64_t head, float* memory) const {
    const DeltaScratch scratch(dims_.K, dims_.V, memory);
    float* reads = memory + layout_.reads;
    const int64_t key_head = head / (dims_.HV / dims_.H);
    const Part q(*this, slot, key_head * dims_.K, dims_.K, layout_.key_row, memory + layout_.conv_q);
    const Part k(*this, slot, (dims_.H + key_head) * dims_.K, dims_.K, layout_.key_row, memory + layout_.conv_k);
    const Part v(*this, slot, 2 * dims_.H * dims_.K + head * dims_.V, dims_.V, layout_.value_row,
                 memory + layout_.conv_v);
    start(scratch, slot, head);
    const auto fill = [&](int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        float* query = scratch.q + i * scratch.row;
        float* key = scratch.k + i * scratch.row;
        q.convolve(sequence, first + i, query);
        k.convolve(sequence, first + i, key);
        l2_normalize(query, scratch.row);
        l2_normalize(key, scratch.row);
        v.convolve(sequence, first + i, scratch.v + i * scratch.values);
        gate(sequence.begin + first + i, head, scratch.decay + i, scratch.beta + i);
      }
      exponentiate(scratch.decay, count);
    };
    preview_block(scratch, sequence.tokens, read_, fill, reads);
    for (int64_t t = 0; t < sequence.tokens; ++t) write(sequence.begin + t, head, reads + t * scratch.values);
  }

 private:
  // The channels that one of q, k and v takes from the convolution.
  struct Part {
    const LayerPreview& layer;
    int64_t channel;
    ConvBlock block;

    Part(const LayerPreview& layer, int64_t slot, int64_t channel, int64_t channels, int64_t row, float* memory)
        : layer(layer), channel(channel), block(channels, layer.dims_.KC, row, memory) {
      const T* past = slot < 0 ? nullptr : layer.conv_state_.at(slot);
      load_conv_block(block, layer.conv_weight_, layer.conv_bias_, past, layer.conv_state_.strides[1], channel);
    }

    void convolve(const Sequence& sequence, int64_t t, float* out) const {
      convolve_token(block, layer.qkv_.at(sequence.begin, channel), layer.qkv_.strides[0], t, true, out);
    }
  };

  void start(const DeltaScratch& scratch, int64_t slot, int64_t head) const {
    if (slot < 0) return load_state(scratch, nullptr, 0, 0, dims_.K);
    const StateMatrix initial{state_.at(slot, head), state_.strides[2], state_.strides[3]};
    load_state(scratch, &initial, 0, dims_.V, dims_.K);
  }

  void gate(int64_t t, int64_t head, float* g, float* beta) const {
    const double x = static_cast<double>(to_float(*a_.at(t, head))) + to_float(*dt_bias_.at(head));
    *g = log_decay(*A_log_.at(head), x);
    *beta = write_strength(to_float(*b_.at(t, head)));
  }

  void write(int64_t t, int64_t head, float* reads) const {
    for (int64_t r = 0; r < dims_.V; ++r) reads[r] *= scale_;
    T* out = o_.at(t, head);
    if (z_ != nullptr) {
      const View<const T, 3> z(*z_);
      return rms_norm_gated_row(reads, norm_weight_, z.at(t, head), dims_.V, eps_, out);
    }
    for (int64_t r = 0; r < dims_.V; ++r) out[r] = from_float<T>(reads[r]);
  }

  const Dims& dims_;
  const Layout layout_;
  const View<const T, 2> qkv_, a_, b_, conv_weight_;
  const T* conv_bias_;
  const View<const T, 3> conv_state_;
  const View<const float, 1> A_log_;
  const View<const T, 1> dt_bias_;
  const View<float, 4> state_;
  const View<T, 3> o_;
  const clover_tensor* z_;
  const T* norm_weight_;
  const double eps_;
  const float scale_;
  const PreviewRead read_;
};

template <class T>
void preview(const clover_call& call, const Args& args, const Dims& dims) {
  const LayerPreview<T> layer(args, dims);
  const View<const int32_t, 1> cu_seqlens(*args.cu_seqlens), initial(*args.initial_state_indices);
  const ThreadScratch scratch(call, Layout(dims).size);
  const int64_t work = dims.V * dims.K * (1 + average_length(dims.T, dims.N)) / 2;
  parallel_for(dims.N * dims.HV, work, scratch.workers(), [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t n = unit / dims.HV;
      const Sequence sequence = sequence_at(cu_seqlens, n);
      if (sequence.tokens > 0) layer.run_head(sequence, *initial.at(n), unit % dims.HV, scratch.of(worker));
    }
  });
}

}  // namespace

uint64_t preview_gdn_workspace(const Args&, const Dims& dims) {
  return ThreadScratch::bytes(Layout(dims).size);
}

void preview_gdn(const clover_call& call, const Args& args, const Dims& dims) {
  with_float_type(args.qkv->dtype, [&](auto type) { preview<typename decltype(type)::type>(call, args, dims); });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
