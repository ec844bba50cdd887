// causal_conv1d and preview_conv1d. A unit of work is a block of channels of one sequence, state included.
#include "../support/convolution.hpp"

#include "../support/parallel.hpp"
#include "../support/sequences.hpp"
#include "../support/variant.hpp"

namespace clover::cpu::CLOVER_CPU_ISA {
namespace {

constexpr int64_t kBlockFloats = 4096;  // a block's weights, bias and history, on the stack
constexpr int64_t kWidestBlock = 256;   // channels

template <class T>
struct Convolution {
  View<const T, 2> x, weight;
  const T* bias;
  View<const T, 3> state;
  View<T, 2> y;
  int64_t channels, taps;
  bool with_silu;

  template <class Args, class Dims>
  Convolution(const Args& args, const Dims& dims)
      : x(*args.x),
        weight(*args.weight),
        bias(args.bias == nullptr ? nullptr : data_of<const T>(*args.bias)),
        state(*args.conv_state),
        y(*args.y),
        channels(dims.C),
        taps(dims.KC),
        with_silu(args.activation != 0) {}

  // How many channels a block has.
  int64_t block_width() const {
    const int64_t fitting = kBlockFloats / (2 * taps) / kLanes * kLanes;
    return fitting == 0 ? kLanes : minimum(fitting, kWidestBlock);
  }

  void convolve(const Sequence& sequence, int64_t slot, int64_t first, int64_t width) const {
    if (sequence.tokens == 0) return;
    const T* past = slot < 0 ? nullptr : state.at(slot);
    if (ConvBlock::floats(taps, kLanes) > kBlockFloats) return convolve_wide(sequence, past, first, width);
    float memory[kBlockFloats], out[kWidestBlock];
    const ConvBlock block(width, taps, round_up(width, kLanes), memory);
    load_conv_block(block, weight, bias, past, state.strides[1], first);
    const T* input = x.at(sequence.begin, first);
    for (int64_t t = 0; t < sequence.tokens; ++t) {
      convolve_token(block, input, x.strides[0], t, with_silu, out);
      T* output = y.at(sequence.begin + t, first);
      for (int64_t c = 0; c < width; c += kLanes) store_part(output + c, width - c, load(out + c));
    }
  }

  // Any number of taps, one channel at a time.
  void convolve_wide(const Sequence& sequence, const T* past, int64_t first, int64_t width) const {
    for (int64_t t = 0; t < sequence.tokens; ++t) {
      for (int64_t c = first; c < first + width; ++c) {
        double sum = bias == nullptr ? 0.0 : to_float(bias[c]);
        for (int64_t j = 0; j < taps; ++j) {
          const int64_t source = t + j - (taps - 1);
          float z = 0.0f;
          if (source >= 0) {
            z = to_float(*x.at(sequence.begin + source, c));
          } else if (past != nullptr) {
            z = to_float(past[c * state.strides[1] + t + j]);
          }
          sum += static_cast<double>(to_float(*weight.at(c, j))) * z;
        }
        const Vec value = splat(static_cast<float>(sum));
        *y.at(sequence.begin + t, c) = from_float<T>(with_silu ? silu(value)[0] : value[0]);
      }
    }
  }

  // The last taps - 1 entries of the past followed by the sequence. `past` and `next` may be the same slot.
  void remember(const Sequence& sequence, const T* past, T* next, int64_t first, int64_t width) const {
    if (sequence.tokens == 0 && past == next) return;
    for (int64_t c = first; c < first + width; ++c) {
      for (int64_t i = 0; i + 1 < taps; ++i) {
        const int64_t source = sequence.tokens + i - (taps - 1);
        const int64_t offset = c * state.strides[1];
        if (source >= 0) {
          next[offset + i] = *x.at(sequence.begin + source, c);
        } else {
          next[offset + i] = past == nullptr ? T{} : past[offset + sequence.tokens + i];
        }
      }
    }
  }
};

// Calls body(sequence, n, first channel, width) for every unit of work.
template <class T, class Dims, class Body>
void for_each_block(const Convolution<T>& convolution, const clover_tensor& cu_seqlens_tensor, const Dims& dims,
                    const Body& body) {
  const View<const int32_t, 1> cu_seqlens(cu_seqlens_tensor);
  const int64_t width = convolution.block_width();
  const int64_t blocks = divide_up(dims.C, width);
  const int64_t work = minimum(width, dims.C) * dims.KC * (1 + average_length(dims.T, dims.N));
  parallel_for(dims.N * blocks, work, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t n = unit / blocks, first = unit % blocks * width;
      body(sequence_at(cu_seqlens, n), n, first, minimum(width, dims.C - first));
    }
  });
}

template <class T>
void commit(const clover_causal_conv1d_args& args, const clover_causal_conv1d_dims& dims) {
  const Convolution<T> convolution(args, dims);
  const View<const int32_t, 1> initial(*args.initial_state_indices), final(*args.final_state_indices);
  const View<T, 3> pool(*args.conv_state);
  for_each_block(convolution, *args.cu_seqlens, dims,
                 [&](const Sequence& sequence, int64_t n, int64_t first, int64_t width) {
                   const int64_t from = *initial.at(n), to = *final.at(n);
                   convolution.convolve(sequence, from, first, width);
                   if (to < 0) return;
                   const T* past = from < 0 ? nullptr : pool.at(from);
                   convolution.remember(sequence, past, pool.at(to), first, width);
                 });
}

template <class T>
void preview(const clover_preview_conv1d_args& args, const clover_preview_conv1d_dims& dims) {
  const Convolution<T> convolution(args, dims);
  const View<const int32_t, 1> initial(*args.initial_state_indices);
  for_each_block(convolution, *args.cu_seqlens, dims,
                 [&](const Sequence& sequence, int64_t n, int64_t first, int64_t width) {
                   convolution.convolve(sequence, *initial.at(n), first, width);
                 });
}

}  // namespace

void causal_conv1d(const clover_call&, const clover_causal_conv1d_args& args, const clover_causal_conv1d_dims& dims) {
  with_float_type(args.x->dtype, [&](auto type) { commit<typename decltype(type)::type>(args, dims); });
}

void preview_conv1d(const clover_call&, const clover_preview_conv1d_args& args,
                    const clover_preview_conv1d_dims& dims) {
  with_float_type(args.x->dtype, [&](auto type) { preview<typename decltype(type)::type>(args, dims); });
}

}  // namespace clover::cpu::CLOVER_CPU_ISA
