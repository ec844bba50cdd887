// causal_conv1d and preview_conv1d. Host code; the kernels are in convolution.cu.
//
// A commit of aligned rows is one launch, in which whoever reads a slot writes it; others are two: all outputs, which
// read the slots, then the slots.
#pragma once

#include "plan.h"

namespace clover::native {

constexpr int kConvGroup = 4;     // channels that a thread handles at once where rows are aligned
constexpr int kConvTokens = 24;   // tokens that a thread computes one after another, where there are enough of them
constexpr int kConvAhead = 8;     // of these, tokens whose inputs are on their way
constexpr int kConvColumns = 32;  // groups of channels side by side in a block, if a token's come out even
constexpr int kConvTaps = 4;      // what the grouped kernels are made for
constexpr int kConvBlocks = 3;    // blocks that share a multiprocessor

// Strides in elements; the last axis has unit stride.
struct ConvParams {
  const void* x;
  const void* weight;
  const void* bias;  // null: none
  void* state;       // written by a commit only
  const int32_t* cu_seqlens;
  const int32_t* initial;
  const int32_t* final;  // null: a preview
  void* y;
  int64_t x_token, weight_channel, state_slot, state_channel, y_token;
  int64_t tokens, channels, taps, sequences, slots;
  int32_t with_silu;
  int32_t run;    // tokens that a thread computes one after another: kConvTokens, kConvAhead or 1
  int32_t tiled;  // a block computes kConvColumns groups of neighbouring runs, which share inputs
};

struct ConvArgs {
  DType dtype = DType::kFloat32;
  ConvParams call = {};
};

#if !defined(__HIPCC_RTC__)  // what follows is for the host

namespace convolution {

inline bool in_groups(const ConvParams& p) {
  return p.taps == kConvTaps && p.weight_channel == kConvTaps && p.channels % kConvGroup == 0 &&
         p.x_token % kConvGroup == 0 && p.y_token % kConvGroup == 0 && is_aligned(p.x) && is_aligned(p.y) &&
         is_aligned(p.weight) && (p.bias == nullptr || is_aligned(p.bias));
}

// y in the data's own type, or in FP32 for preview_gdn.
inline Launch output_launch(const Machine& machine, const ConvParams& p, DType dtype, bool to_f32) {
  const bool groups = in_groups(p);
  const DTypeNames names = to_f32   ? groups ? CLOVER_DTYPE_NAMES("clover_portable_conv_to_f32_x4")
                                             : CLOVER_DTYPE_NAMES("clover_portable_conv_to_f32")
                           : groups ? CLOVER_DTYPE_NAMES("clover_portable_conv_x4")
                                    : CLOVER_DTYPE_NAMES("clover_portable_conv");
  const int64_t columns = p.channels / (groups ? kConvGroup : 1);
  ConvParams call = p;
  call.run = 1;
  for (int run : {kConvAhead, kConvTokens}) {
    if (p.tokens * columns >= int64_t{run} * 4 * kBlockThreads * machine.multiprocessors) call.run = run;
  }
  const int64_t runs = divide_up(p.tokens, call.run), runs_of_block = kBlockThreads / kConvColumns;
  call.tiled = groups && columns % kConvColumns == 0 && runs % runs_of_block == 0;
  const int64_t heads = groups ? round_up(p.sequences * columns, kBlockThreads) : 0;
  return make_launch(names.of(dtype), loop_blocks(machine, heads + runs * columns), call);
}

}  // namespace convolution

inline int plan_preview_conv1d(const Machine& machine, const ConvArgs& args, Launch out[], int max,
                               const char** why_not) {
  *why_not = nullptr;
  if (max < 1) return refuse(why_not, "room for no launch");
  const ConvParams& p = args.call;
  if (p.tokens * p.channels * p.sequences == 0) return 0;
  out[0] = convolution::output_launch(machine, p, args.dtype, false);
  return 1;
}

inline int plan_causal_conv1d(const Machine& machine, const ConvArgs& args, Launch out[], int max,
                              const char** why_not) {
  if (max < 2) return refuse(why_not, "room for fewer than two launches");
  const ConvParams& p = args.call;
  if (p.sequences * p.channels > 0 && convolution::in_groups(p)) {
    *why_not = nullptr;
    out[0] = convolution::output_launch(machine, p, args.dtype, false);
    return 1;
  }
  int count = plan_preview_conv1d(machine, args, out, max, why_not);
  if (p.sequences * p.channels == 0 || p.taps == 1) return count;
  out[count++] = make_launch(CLOVER_DTYPE_NAMES("clover_portable_conv_state").of(args.dtype),
                             loop_blocks(machine, p.sequences * p.channels), p);
  return count;
}

#endif

}  // namespace clover::native
