// preview_gdn: convolution, gating, delta rule and gated norm one after another, with FP32 intermediates in the
// workspace. Its kernels are those of the single operators. Host code.
#pragma once

#include "convolution.h"
#include "delta_rule.h"
#include "elementwise.h"

namespace clover::native {

// Strides in elements; the last axis has unit stride except that of a, b and the state.
struct PreviewGdnArgs {
  DType dtype = DType::kFloat32;
  int64_t tokens = 0, sequences = 0, heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, taps = 0;
  int64_t conv_slots = 0, slots = 0;  // of the two pools
  const void* qkv = nullptr;
  int64_t qkv_token = 0;
  const void* a = nullptr;
  int64_t a_token = 0, a_head = 0;
  const void* b = nullptr;
  int64_t b_token = 0, b_head = 0;
  const void* z = nullptr;  // null: no norm
  int64_t z_token = 0, z_head = 0;
  const void* conv_weight = nullptr;
  int64_t weight_channel = 0;
  const void* conv_bias = nullptr;  // null: none
  const void* conv_state = nullptr;
  int64_t conv_slot = 0, conv_channel = 0;
  const float* A_log = nullptr;
  const void* dt_bias = nullptr;
  const float* state = nullptr;
  int64_t state_slot = 0, state_head = 0, state_v = 0, state_k = 0;
  const int32_t* cu_seqlens = nullptr;
  const int32_t* initial = nullptr;
  const void* norm_weight = nullptr;
  void* o = nullptr;
  int64_t o_token = 0, o_head = 0;
  double eps = 0.0;
  float scale = 1.0f;
  DeltaMode read = DeltaMode::kBidirectional;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

namespace preview_gdn {

struct Parts {
  float *qkv, *g, *beta, *o, *reads;
  size_t bytes;

  Parts(const PreviewGdnArgs& a, void* memory) {
    WorkspaceParts parts(memory);
    qkv = parts.take<float>(a.tokens * channels(a));
    g = parts.take<float>(a.tokens * a.value_heads);
    beta = parts.take<float>(a.tokens * a.value_heads);
    o = parts.take<float>(a.tokens * a.value_heads * a.value_dim);
    reads = parts.take<float>(delta_rule::read_floats(a.read, a.tokens, a.value_heads, a.value_dim));
    bytes = parts.bytes();
  }

  static int64_t channels(const PreviewGdnArgs& a) { return 2 * a.heads * a.key_dim + a.value_heads * a.value_dim; }
};

// The same index serves both pools and must lie in both.
inline int64_t usable_slots(const PreviewGdnArgs& a) {
  return a.conv_slots < a.slots ? a.conv_slots : a.slots;
}

inline ConvParams conv_params(const PreviewGdnArgs& a, const Parts& parts) {
  ConvParams p{};
  p.x = a.qkv, p.x_token = a.qkv_token;
  p.weight = a.conv_weight, p.weight_channel = a.weight_channel, p.bias = a.conv_bias;
  p.state = const_cast<void*>(a.conv_state), p.state_slot = a.conv_slot, p.state_channel = a.conv_channel;
  p.cu_seqlens = a.cu_seqlens, p.initial = a.initial;
  p.y = parts.qkv, p.y_token = Parts::channels(a);
  p.tokens = a.tokens, p.channels = Parts::channels(a), p.taps = a.taps;
  p.sequences = a.sequences, p.slots = usable_slots(a);
  p.with_silu = 1;
  return p;
}

inline GatingArgs gating_args(const PreviewGdnArgs& a, const Parts& parts) {
  GatingArgs args;
  args.dtype = a.dtype;
  GatingParams& p = args.call;
  p.a = a.a, p.a_token = a.a_token, p.a_head = a.a_head;
  p.b = a.b, p.b_token = a.b_token, p.b_head = a.b_head;
  p.A_log = a.A_log, p.dt_bias = a.dt_bias;
  p.g = parts.g, p.g_token = a.value_heads;
  p.beta = parts.beta, p.beta_token = a.value_heads;
  p.tokens = a.tokens, p.heads = a.value_heads;
  return args;
}

inline DeltaParams delta_params(const PreviewGdnArgs& a, const Parts& parts) {
  const int64_t channels = Parts::channels(a), keys = a.heads * a.key_dim;
  DeltaParams p{};
  p.q = parts.qkv, p.q_token = channels, p.q_head = a.key_dim;
  p.k = parts.qkv + keys, p.k_token = channels, p.k_head = a.key_dim;
  p.v = parts.qkv + 2 * keys, p.v_token = channels, p.v_head = a.value_dim;
  p.g = parts.g, p.g_token = a.value_heads;
  p.beta = parts.beta, p.beta_token = a.value_heads;
  p.state = const_cast<float*>(a.state);
  p.state_slot = a.state_slot, p.state_head = a.state_head, p.state_v = a.state_v, p.state_k = a.state_k;
  p.cu_seqlens = a.cu_seqlens, p.initial = a.initial;
  p.o = parts.o, p.o_token = a.value_heads * a.value_dim, p.o_head = a.value_dim;
  p.reads = delta_rule::needs_reads(a.read, a.tokens) ? parts.reads : nullptr;
  p.tokens = a.tokens, p.slots = usable_slots(a), p.sequences = a.sequences;
  p.heads = static_cast<int32_t>(a.heads), p.value_heads = static_cast<int32_t>(a.value_heads);
  p.key_dim = static_cast<int32_t>(a.key_dim), p.value_dim = static_cast<int32_t>(a.value_dim);
  p.scale = a.scale, p.l2norm = 1, p.mode = a.read;
  return p;
}

inline NormParams norm_params(const PreviewGdnArgs& a, const Parts& parts) {
  NormParams p{};
  p.x = parts.o, p.x_token = a.value_heads * a.value_dim, p.x_head = a.value_dim;
  p.weight = a.norm_weight;
  p.z = a.z, p.z_token = a.z_token, p.z_head = a.z_head;
  p.y = a.o, p.y_token = a.o_token, p.y_head = a.o_head;
  p.tokens = a.tokens, p.heads = a.value_heads, p.size = a.value_dim;
  p.eps = a.eps;
  p.cu_seqlens = a.cu_seqlens, p.initial = a.initial;
  p.sequences = a.sequences, p.slots = usable_slots(a);
  return p;
}

}  // namespace preview_gdn

inline size_t preview_gdn_workspace_bytes(const PreviewGdnArgs& args) {
  return preview_gdn::Parts(args, nullptr).bytes;
}

inline int plan_preview_gdn(const Machine& machine, const PreviewGdnArgs& args, Launch out[], int max,
                            const char** why_not) {
  using namespace preview_gdn;
  *why_not = max < 4 ? "room for fewer than four launches" : delta_rule::refusal(args.key_dim, args.value_dim);
  if (*why_not != nullptr) return 0;
  const Parts parts(args, args.workspace);
  if (args.workspace_bytes < parts.bytes) return refuse(why_not, "the workspace is too small");
  if (args.tokens == 0 || args.sequences == 0) return 0;
  const DeltaParams delta = delta_params(args, parts);
  if (delta_rule::blocks(delta) > kMaxGrid) return refuse(why_not, "too many sequences for one launch");
  out[0] = convolution::output_launch(machine, conv_params(args, parts), args.dtype, true);
  plan_gated_delta_net_gating(machine, gating_args(args, parts), out + 1, 1, why_not);
  out[2] = delta_rule::make(delta, DType::kFloat32);
  out[3] =
      elementwise::norm_launch(machine, norm_params(args, parts), CLOVER_DTYPE_NAMES("clover_portable_norm_of_f32"),
                               CLOVER_DTYPE_NAMES("clover_portable_norm_of_f32_x8"), args.dtype);
  return 4;
}

}  // namespace clover::native
