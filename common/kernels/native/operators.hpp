// The calls of the C ABI as the planners of this folder take them: one struct per operator, as CLOVER_PLANNED_PROVIDER
// of common/device/provider.hpp wants it. A backend that compiles these kernels offers each in one line.
#pragma once

#include <clover/abi_ops.h>

#include "common/device/view.hpp"
#include "common/kernels/native/convolution.h"
#include "common/kernels/native/delta_rule.h"
#include "common/kernels/native/elementwise.h"
#include "common/kernels/native/layout.h"
#include "common/kernels/native/live_rows.h"
#include "common/kernels/native/moe.h"
#include "common/kernels/native/preview_gdn.h"
#include "common/kernels/native/routing.h"

namespace clover::native::operators {

using device::dtype_of;
using device::view;

template <class Args>
struct WithWorkspace {
  static void set_workspace(Args* args, void* workspace, uint64_t bytes) {
    args->workspace = workspace;
    args->workspace_bytes = bytes;
  }
};

// ---- convolution ----

template <class Args, class Dims>
ConvArgs read_convolution(const Args& a, const Dims& d) {
  const auto x = view<2>(a.x), weight = view<2>(a.weight), y = view<2>(a.y);
  const auto state = view<3>(a.conv_state);
  ConvArgs args;
  args.dtype = dtype_of(a.x);
  ConvParams& p = args.call;
  p.x = x.data, p.x_token = x.stride[0];
  p.weight = weight.data, p.weight_channel = weight.stride[0];
  p.bias = view<1>(a.bias).data;
  p.state = state.data, p.state_slot = state.stride[0], p.state_channel = state.stride[1];
  p.cu_seqlens = view<1>(a.cu_seqlens).template as<int32_t>();
  p.initial = view<1>(a.initial_state_indices).template as<int32_t>();
  p.y = y.data, p.y_token = y.stride[0];
  p.tokens = d.T, p.channels = d.C, p.taps = d.KC, p.sequences = d.N, p.slots = d.S;
  p.with_silu = a.activation;
  return args;
}

struct CausalConv1d {
  static constexpr auto plan = plan_causal_conv1d;
  static ConvArgs read(const clover_causal_conv1d_args& a, const clover_causal_conv1d_dims& d) {
    static_assert(CLOVER_causal_conv1d_activation_none == 0);
    ConvArgs args = read_convolution(a, d);
    args.call.final = view<1>(a.final_state_indices).as<int32_t>();
    return args;
  }
};

struct PreviewConv1d {
  static constexpr auto plan = plan_preview_conv1d;
  static ConvArgs read(const clover_preview_conv1d_args& a, const clover_preview_conv1d_dims& d) {
    static_assert(CLOVER_preview_conv1d_activation_none == 0);
    return read_convolution(a, d);
  }
};

// ---- gating and the gated delta rule ----

struct GatedDeltaNetGating {
  static constexpr auto plan = plan_gated_delta_net_gating;
  static GatingArgs read(const clover_gated_delta_net_gating_args& args, const clover_gated_delta_net_gating_dims& d) {
    const auto a = view<2>(args.a), b = view<2>(args.b), g = view<2>(args.g), beta = view<2>(args.beta);
    GatingArgs out;
    out.dtype = dtype_of(args.a);
    GatingParams& p = out.call;
    p.a = a.data, p.a_token = a.stride[0], p.a_head = a.stride[1];
    p.b = b.data, p.b_token = b.stride[0], p.b_head = b.stride[1];
    p.A_log = view<1>(args.A_log).as<float>();
    p.dt_bias = view<1>(args.dt_bias).data;
    p.g = g.as<float>(), p.g_token = g.stride[0];
    p.beta = beta.as<float>(), p.beta_token = beta.stride[0];
    p.tokens = d.T, p.heads = d.HV;
    return out;
  }
};

template <class Args, class Dims>
DeltaArgs read_delta_rule(const Args& a, const Dims& d) {
  const auto q = view<3>(a.q), k = view<3>(a.k), v = view<3>(a.v), o = view<3>(a.o);
  const auto g = view<2>(a.g), beta = view<2>(a.beta);
  const auto state = view<4>(a.state);
  DeltaArgs args;
  args.dtype = dtype_of(a.q);
  DeltaParams& p = args.call;
  p.q = q.data, p.q_token = q.stride[0], p.q_head = q.stride[1];
  p.k = k.data, p.k_token = k.stride[0], p.k_head = k.stride[1];
  p.v = v.data, p.v_token = v.stride[0], p.v_head = v.stride[1];
  p.o = o.data, p.o_token = o.stride[0], p.o_head = o.stride[1];
  p.g = g.template as<float>(), p.g_token = g.stride[0];
  p.beta = beta.template as<float>(), p.beta_token = beta.stride[0];
  p.state = state.template as<float>();
  p.state_slot = state.stride[0], p.state_head = state.stride[1];
  p.state_v = state.stride[2], p.state_k = state.stride[3];
  p.cu_seqlens = view<1>(a.cu_seqlens).template as<int32_t>();
  p.initial = view<1>(a.initial_state_indices).template as<int32_t>();
  p.tokens = d.T, p.slots = d.S, p.sequences = d.N;
  p.heads = static_cast<int32_t>(d.H), p.value_heads = static_cast<int32_t>(d.HV);
  p.key_dim = static_cast<int32_t>(d.K), p.value_dim = static_cast<int32_t>(d.V);
  p.scale = static_cast<float>(a.scale);
  p.l2norm = a.l2norm;
  return args;
}

struct GatedDeltaRule {
  static constexpr auto plan = plan_gated_delta_rule;
  static DeltaArgs read(const clover_gated_delta_rule_args& a, const clover_gated_delta_rule_dims& d) {
    DeltaArgs args = read_delta_rule(a, d);
    args.call.final = view<1>(a.final_state_indices).as<int32_t>();
    return args;
  }
};

static_assert(static_cast<int>(DeltaMode::kBidirectional) == CLOVER_preview_gated_delta_rule_read_bidirectional &&
              static_cast<int>(DeltaMode::kBlock) == CLOVER_preview_gated_delta_rule_read_block &&
              static_cast<int>(DeltaMode::kCausal) == CLOVER_preview_gated_delta_rule_read_causal);

struct PreviewGatedDeltaRule : WithWorkspace<DeltaArgs> {
  static constexpr auto plan = plan_preview_gated_delta_rule;
  static DeltaArgs read(const clover_preview_gated_delta_rule_args& a, const clover_preview_gated_delta_rule_dims& d) {
    DeltaArgs args = read_delta_rule(a, d);
    args.call.mode = static_cast<DeltaMode>(a.read);
    return args;
  }
  static uint64_t workspace_bytes(const Machine&, const DeltaArgs& args) {
    return preview_gated_delta_rule_workspace_bytes(args);
  }
};

static_assert(static_cast<int>(DeltaMode::kBidirectional) == CLOVER_preview_gdn_read_bidirectional &&
              static_cast<int>(DeltaMode::kBlock) == CLOVER_preview_gdn_read_block &&
              static_cast<int>(DeltaMode::kCausal) == CLOVER_preview_gdn_read_causal);

struct PreviewGdn : WithWorkspace<PreviewGdnArgs> {
  static constexpr auto plan = plan_preview_gdn;
  static PreviewGdnArgs read(const clover_preview_gdn_args& args, const clover_preview_gdn_dims& d) {
    const auto qkv = view<2>(args.qkv), a = view<2>(args.a), b = view<2>(args.b), weight = view<2>(args.conv_weight);
    const auto z = view<3>(args.z), o = view<3>(args.o), conv_state = view<3>(args.conv_state);
    const auto state = view<4>(args.state);
    PreviewGdnArgs out;
    out.dtype = dtype_of(args.qkv);
    out.tokens = d.T, out.sequences = d.N, out.heads = d.H, out.value_heads = d.HV;
    out.key_dim = d.K, out.value_dim = d.V, out.taps = d.KC, out.conv_slots = d.SC, out.slots = d.S;
    out.qkv = qkv.data, out.qkv_token = qkv.stride[0];
    out.a = a.data, out.a_token = a.stride[0], out.a_head = a.stride[1];
    out.b = b.data, out.b_token = b.stride[0], out.b_head = b.stride[1];
    out.z = z.data, out.z_token = z.stride[0], out.z_head = z.stride[1];
    out.conv_weight = weight.data, out.weight_channel = weight.stride[0];
    out.conv_bias = view<1>(args.conv_bias).data;
    out.conv_state = conv_state.data;
    out.conv_slot = conv_state.stride[0], out.conv_channel = conv_state.stride[1];
    out.A_log = view<1>(args.A_log).as<float>();
    out.dt_bias = view<1>(args.dt_bias).data;
    out.state = state.as<float>();
    out.state_slot = state.stride[0], out.state_head = state.stride[1];
    out.state_v = state.stride[2], out.state_k = state.stride[3];
    out.cu_seqlens = view<1>(args.cu_seqlens).as<int32_t>();
    out.initial = view<1>(args.initial_state_indices).as<int32_t>();
    out.norm_weight = view<1>(args.norm_weight).data;
    out.o = o.data, out.o_token = o.stride[0], out.o_head = o.stride[1];
    out.eps = args.eps, out.scale = static_cast<float>(args.scale);
    out.read = static_cast<DeltaMode>(args.read);
    return out;
  }
  static uint64_t workspace_bytes(const Machine&, const PreviewGdnArgs& args) {
    return preview_gdn_workspace_bytes(args);
  }
};

// ---- routing and live rows ----

template <class Args, class Dims>
TopkSoftmaxArgs read_routing(const Args& a, const Dims& d) {
  const auto logits = view<2>(a.logits), ids = view<2>(a.ids), weights = view<2>(a.weights);
  TopkSoftmaxArgs args;
  args.dtype = dtype_of(a.logits);
  args.tokens = d.T, args.experts = d.E, args.top_k = d.k;
  args.logits = logits.data, args.logits_row = logits.stride[0];
  args.ids = ids.template as<int32_t>(), args.ids_row = ids.stride[0];
  args.weights = weights.template as<float>(), args.weights_row = weights.stride[0];
  args.renormalize = a.renormalize != 0;
  return args;
}

struct TopkSoftmax {
  static constexpr auto plan = plan_topk_softmax;
  static TopkSoftmaxArgs read(const clover_topk_softmax_args& a, const clover_topk_softmax_dims& d) {
    return read_routing(a, d);
  }
};

struct BlockCoreset : WithWorkspace<BlockCoresetArgs> {
  static constexpr auto plan = plan_block_coreset;
  static constexpr uint64_t kTopPGiven = uint64_t{1} << 3;
  static BlockCoresetArgs read(const clover_block_coreset_args& a, const clover_block_coreset_dims& d) {
    const auto coreset = view<2>(a.coreset);
    BlockCoresetArgs args;
    args.routing = read_routing(a, d);
    args.sequences = d.N;
    args.cu_seqlens = view<1>(a.cu_seqlens).as<int32_t>();
    args.live = view<1>(a.live).as<uint8_t>();
    args.coreset = coreset.as<uint8_t>(), args.coreset_row = coreset.stride[0];
    args.budget = d.budget;
    args.largest = a.mode == CLOVER_block_coreset_mode_max;
    args.top_p = (a.given & kTopPGiven) != 0 ? a.top_p : 0.0;
    return args;
  }
  static uint64_t workspace_bytes(const Machine&, const BlockCoresetArgs& args) {
    return block_coreset_workspace_bytes(args);
  }
};

struct LiveRowRoutes {
  static constexpr auto plan = plan_live_row_routes;
  static LiveRowRoutesArgs read(const clover_live_row_routes_args& a, const clover_live_row_routes_dims& d) {
    const auto ids = view<2>(a.ids), weights = view<2>(a.weights);
    const auto live_ids = view<2>(a.live_ids), live_weights = view<2>(a.live_weights);
    LiveRowRoutesArgs args;
    LiveRowRoutesParams& p = args.call;
    p.ids = ids.as<int32_t>(), p.ids_row = ids.stride[0];
    p.weights = weights.as<float>(), p.weights_row = weights.stride[0];
    p.live = view<1>(a.live).as<uint8_t>();
    p.live_ids = live_ids.as<int32_t>(), p.live_ids_row = live_ids.stride[0];
    p.live_weights = live_weights.as<float>(), p.live_weights_row = live_weights.stride[0];
    p.rows = view<1>(a.rows).as<int32_t>();
    p.count = view<1>(a.count).as<int32_t>();
    p.tokens = d.T, p.top_k = d.k;
    return args;
  }
};

struct MergeLiveRows {
  static constexpr auto plan = plan_merge_live_rows;
  static MergeLiveRowsArgs read(const clover_merge_live_rows_args& a, const clover_merge_live_rows_dims& d) {
    const auto fresh = view<2>(a.fresh), cache = view<2>(a.cache), out = view<2>(a.out);
    MergeLiveRowsArgs args;
    args.tokens = d.T, args.width = d.D, args.element_bytes = a.fresh->dtype.bits / 8;
    args.fresh = fresh.data, args.fresh_row = fresh.stride[0];
    args.cache = cache.data, args.cache_row = cache.stride[0];
    args.live = view<1>(a.live).as<uint8_t>();
    args.out = out.data, args.out_row = out.stride[0];
    return args;
  }
};

// ---- mixture of experts ----

struct FusedMoe : WithWorkspace<FusedMoeArgs> {
  static constexpr auto plan = plan_fused_moe;
  static FusedMoeArgs read(const clover_fused_moe_args& a, const clover_fused_moe_dims& d) {
    const auto x = view<2>(a.x), ids = view<2>(a.ids), weights = view<2>(a.weights), y = view<2>(a.y);
    const auto w13 = view<3>(a.w13), w2 = view<3>(a.w2);
    const auto shared_w13 = view<2>(a.shared_w13), shared_w2 = view<2>(a.shared_w2);
    FusedMoeArgs args;
    args.dtype = dtype_of(a.x);
    args.tokens = d.T, args.hidden = d.D, args.intermediate = d.I, args.experts = d.E, args.top_k = d.k;
    args.shared_intermediate = a.shared_w13 == nullptr ? 0 : d.Is;
    args.x = x.data, args.x_row = x.stride[0];
    args.w13 = w13.data, args.w13_expert = w13.stride[0], args.w13_row = w13.stride[1];
    args.w2 = w2.data, args.w2_expert = w2.stride[0], args.w2_row = w2.stride[1];
    args.ids = ids.as<int32_t>(), args.ids_row = ids.stride[0];
    args.weights = weights.as<float>(), args.weights_row = weights.stride[0];
    args.shared_w13 = shared_w13.data, args.shared_w13_row = shared_w13.stride[0];
    args.shared_w2 = shared_w2.data, args.shared_w2_row = shared_w2.stride[0];
    args.shared_gate = view<1>(a.shared_gate).data;
    args.y = y.data, args.y_row = y.stride[0];
    args.routed_scale = static_cast<float>(a.routed_scale);
    return args;
  }
  static uint64_t workspace_bytes(const Machine&, const FusedMoeArgs& args) { return fused_moe_workspace_bytes(args); }
};

// ---- layout, norm and rotary ----

struct RotaryEmbedding {
  static constexpr auto plan = plan_rotary_embedding;
  static RotaryArgs read(const clover_rotary_embedding_args& a, const clover_rotary_embedding_dims& d) {
    const auto q = view<3>(a.q), k = view<3>(a.k);
    const auto table = view<2>(a.cos_sin);
    RotaryArgs args;
    args.dtype = dtype_of(a.q);
    RotaryParams& p = args.call;
    p.positions = view<1>(a.positions).as<int32_t>();
    p.q = q.data, p.q_token = q.stride[0], p.q_head = q.stride[1];
    p.k = k.data, p.k_token = k.stride[0], p.k_head = k.stride[1];
    p.cos_sin = table.data, p.table_row = table.stride[0];
    p.tokens = d.T, p.q_heads = d.A, p.k_heads = d.AKV, p.table_rows = d.P;
    p.half = d.RD / 2;
    p.interleaved = a.interleaved;
    return args;
  }
};

// The axes of a copy. Views have a rank that is known when compiling; this one is the call's.
inline int read_axes(const clover_tensor& src, const clover_tensor& dst, CopyAxis (&axis)[kMaxCopyAxes]) {
  int64_t from = 1, to = 1;  // strides of contiguous tensors
  for (int i = src.ndim - 1; i >= 0 && src.ndim <= kMaxCopyAxes; --i) {
    axis[i].size = src.shape[i];
    axis[i].from = src.strides == nullptr ? from : src.strides[i];
    axis[i].to = dst.strides == nullptr ? to : dst.strides[i];
    from *= src.shape[i], to *= dst.shape[i];
  }
  return src.ndim;
}

inline void* address(const clover_tensor& tensor) {
  return tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
}

struct Rearrange {
  static constexpr auto plan = plan_rearrange;
  static RearrangeArgs read(const clover_rearrange_args& a, const clover_rearrange_dims&) {
    RearrangeArgs args;
    args.src = address(*a.src), args.dst = address(*a.dst);
    args.element_bytes = a.src->dtype.bits / 8 * a.src->dtype.lanes;
    args.axes = read_axes(*a.src, *a.dst, args.axis);
    return args;
  }
};

struct Cast {
  static constexpr auto plan = plan_cast;
  static CastArgs read(const clover_cast_args& a, const clover_cast_dims&) {
    CastArgs args;
    args.src = address(*a.src), args.dst = address(*a.dst);
    args.from = dtype_of(a.src), args.to = dtype_of(a.dst);
    args.axes = read_axes(*a.src, *a.dst, args.axis);
    return args;
  }
};

struct RmsNormGated {
  static constexpr auto plan = plan_rms_norm_gated;
  static RmsNormGatedArgs read(const clover_rms_norm_gated_args& a, const clover_rms_norm_gated_dims& d) {
    const auto x = view<3>(a.x), z = view<3>(a.z), y = view<3>(a.y);
    RmsNormGatedArgs args;
    args.dtype = dtype_of(a.x);
    NormParams& p = args.call;
    p.x = x.data, p.x_token = x.stride[0], p.x_head = x.stride[1];
    p.weight = view<1>(a.weight).data;
    p.z = z.data, p.z_token = z.stride[0], p.z_head = z.stride[1];
    p.y = y.data, p.y_token = y.stride[0], p.y_head = y.stride[1];
    p.tokens = d.T, p.heads = d.HV, p.size = d.V;
    p.eps = a.eps;
    return args;
  }
};

}  // namespace clover::native::operators
