// Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit.
// Clover's operators for C++. Link `Clover::ops`; nothing else is needed at link time.
//
// A function validates its call, runs it on the handle's stream and throws a clover::Error (see clover/error.h) when it
// cannot: InvalidArgument before anything is written, Unsupported when no provider takes it, MissingWorkspace. Arguments
// stand in the order inputs, attributes, outputs; std::nullopt leaves out an optional tensor or takes a default.
//
// Every operator is declared unless CLOVER_OPS_DECLARATIONS_HEADER names a header that chooses: the CMake function
// clover_ops_declarations() and `clover-ops declarations` write one. A declared operator without a provider compiles,
// answers supports() == false, and throws Unsupported when it is called; there is never a fallback.
#pragma once

#include <clover/abi_ops.h>
#include <clover/error.h>
#include <clover/handle.h>
#include <clover/registry.h>
#include <clover/tensor.h>

#include <cstdint>
#include <optional>

#ifdef CLOVER_OPS_DECLARATIONS_HEADER
#include CLOVER_OPS_DECLARATIONS_HEADER
#endif

// Without a chosen configuration every switch is on.
#ifndef CLOVER_OPS_DECLARATIONS_CONFIGURED
#define CLOVER_OPS_DECLARE_CAUSAL_CONV1D 1
#define CLOVER_OPS_DECLARE_PREVIEW_CONV1D 1
#define CLOVER_OPS_DECLARE_GATED_DELTA_NET_GATING 1
#define CLOVER_OPS_DECLARE_GATED_DELTA_RULE 1
#define CLOVER_OPS_DECLARE_PREVIEW_GATED_DELTA_RULE 1
#define CLOVER_OPS_DECLARE_PREVIEW_GDN 1
#define CLOVER_OPS_DECLARE_TOPK_SOFTMAX 1
#define CLOVER_OPS_DECLARE_BLOCK_CORESET 1
#define CLOVER_OPS_DECLARE_LIVE_ROW_ROUTES 1
#define CLOVER_OPS_DECLARE_MERGE_LIVE_ROWS 1
#define CLOVER_OPS_DECLARE_FUSED_MOE 1
#define CLOVER_OPS_DECLARE_ROTARY_EMBEDDING 1
#define CLOVER_OPS_DECLARE_REARRANGE 1
#define CLOVER_OPS_DECLARE_CAST 1
#define CLOVER_OPS_DECLARE_RMS_NORM_GATED 1
#endif

namespace clover {

// An operator, for queries.
enum class Op : uint32_t {
  kCausalConv1d = CLOVER_OP_causal_conv1d,
  kPreviewConv1d = CLOVER_OP_preview_conv1d,
  kGatedDeltaNetGating = CLOVER_OP_gated_delta_net_gating,
  kGatedDeltaRule = CLOVER_OP_gated_delta_rule,
  kPreviewGatedDeltaRule = CLOVER_OP_preview_gated_delta_rule,
  kPreviewGdn = CLOVER_OP_preview_gdn,
  kTopkSoftmax = CLOVER_OP_topk_softmax,
  kBlockCoreset = CLOVER_OP_block_coreset,
  kLiveRowRoutes = CLOVER_OP_live_row_routes,
  kMergeLiveRows = CLOVER_OP_merge_live_rows,
  kFusedMoe = CLOVER_OP_fused_moe,
  kRotaryEmbedding = CLOVER_OP_rotary_embedding,
  kRearrange = CLOVER_OP_rearrange,
  kCast = CLOVER_OP_cast,
  kRmsNormGated = CLOVER_OP_rms_norm_gated,
};

// activation: applied to the output.
enum class Activation : int32_t { kNone = CLOVER_causal_conv1d_activation_none, kSilu = CLOVER_causal_conv1d_activation_silu };

// read: which history each token reads.
enum class Read : int32_t { kBidirectional = CLOVER_preview_gated_delta_rule_read_bidirectional, kBlock = CLOVER_preview_gated_delta_rule_read_block, kCausal = CLOVER_preview_gated_delta_rule_read_causal };

// mode: how a block scores an expert.
enum class Mode : int32_t { kVote = CLOVER_block_coreset_mode_vote, kMax = CLOVER_block_coreset_mode_max };

// weight_layout: layout of w13 and w2; others are reserved.
enum class WeightLayout : int32_t { kDense = CLOVER_fused_moe_weight_layout_dense };

// Whether the backend's manifest lists the operator; throws InvalidArgument for a backend that is not installed.
inline bool provides(Op op, const char* backend) {
  int32_t answer = 0;
  check(clover_provides(static_cast<uint32_t>(op), backend, &answer));
  return answer != 0;
}

// Whether an active provider exists for the operator on the device.
inline bool supports(Op op, Device device) {
  int32_t answer = 0;
  check(clover_supports(static_cast<uint32_t>(op), device.type, device.id, &answer));
  return answer != 0;
}

#if CLOVER_OPS_DECLARE_CAUSAL_CONV1D
// Causal short convolution. Convolve each packed sequence causally, seeded with its slot's past inputs, and store its
// last inputs.
//   y[t, c] = act(bias[c] + sum_j weight[c, j] * z[t + j, c]), z = the slot's KC-1 past inputs, then x
//
//   x [T, C] X: inputs, sequences packed one after another
//   weight [C, KC] X: one filter per channel, oldest tap first
//   bias [C] X, optional: added before the activation
//   conv_state [S, C, KC-1] X, in/out: pool of past inputs, oldest first
//   cu_seqlens [N+1] int32: where each sequence starts and ends
//   initial_state_indices [N] int32: slot read; negative: start from zeros
//   final_state_indices [N] int32: slot written; negative: discard
//   y [T, C] X, written: outputs
//   activation: applied to the output (default none)
//   max_seqlen: longest sequence expected; guides kernel choice only (default T)
// Source: Mamba (arXiv 2312.00752), section 3.4; vLLM causal_conv1d.
inline void causal_conv1d(const Handle& handle,
                          const TensorView& x,
                          const TensorView& weight,
                          const std::optional<TensorView>& bias,
                          const TensorView& conv_state,
                          const TensorView& cu_seqlens,
                          const TensorView& initial_state_indices,
                          const TensorView& final_state_indices,
                          Activation activation,
                          std::optional<int64_t> max_seqlen,
                          const TensorView& y) {
  clover_causal_conv1d_args args{};
  args.struct_size = sizeof(args);
  args.x = x.abi();
  args.weight = weight.abi();
  args.bias = bias ? bias->abi() : nullptr;
  args.conv_state = conv_state.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.initial_state_indices = initial_state_indices.abi();
  args.final_state_indices = final_state_indices.abi();
  args.y = y.abi();
  args.activation = static_cast<int32_t>(activation);
  args.given |= uint64_t{1} << 0;
  if (max_seqlen) {
    args.max_seqlen = *max_seqlen;
    args.given |= uint64_t{1} << 1;
  }
  const clover_handle abi_handle = handle.abi();
  check(clover_causal_conv1d(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_CAUSAL_CONV1D

#if CLOVER_OPS_DECLARE_PREVIEW_CONV1D
// Preview convolution. Convolve each packed block, seeded with its slot's past inputs, and leave the slot as it is.
//   as causal_conv1d; conv_state is read only
//
//   x [T, C] X: inputs, blocks packed one after another
//   weight [C, KC] X: one filter per channel, oldest tap first
//   bias [C] X, optional: added before the activation
//   conv_state [S, C, KC-1] X: pool of past inputs, oldest first
//   cu_seqlens [N+1] int32: where each block starts and ends
//   initial_state_indices [N] int32: slot read; negative: start from zeros
//   y [T, C] X, written: outputs
//   activation: applied to the output (default none)
//   max_seqlen: longest block expected; guides kernel choice only (default T)
// Source: causal_conv1d.
inline void preview_conv1d(const Handle& handle,
                           const TensorView& x,
                           const TensorView& weight,
                           const std::optional<TensorView>& bias,
                           const TensorView& conv_state,
                           const TensorView& cu_seqlens,
                           const TensorView& initial_state_indices,
                           Activation activation,
                           std::optional<int64_t> max_seqlen,
                           const TensorView& y) {
  clover_preview_conv1d_args args{};
  args.struct_size = sizeof(args);
  args.x = x.abi();
  args.weight = weight.abi();
  args.bias = bias ? bias->abi() : nullptr;
  args.conv_state = conv_state.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.initial_state_indices = initial_state_indices.abi();
  args.y = y.abi();
  args.activation = static_cast<int32_t>(activation);
  args.given |= uint64_t{1} << 0;
  if (max_seqlen) {
    args.max_seqlen = *max_seqlen;
    args.given |= uint64_t{1} << 1;
  }
  const clover_handle abi_handle = handle.abi();
  check(clover_preview_conv1d(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_PREVIEW_CONV1D

#if CLOVER_OPS_DECLARE_GATED_DELTA_NET_GATING
// Gating of the gated delta net. Turn the two gate projections into the log decay and the write strength of each value
// head.
//   g = -exp(A_log) * softplus(a + dt_bias), beta = sigmoid(b)
//
//   a [T, HV] X: decay projection
//   b [T, HV] X: write-strength projection
//   A_log [HV] float32: logarithm of the decay rate
//   dt_bias [HV] X: added to a
//   g [T, HV] float32, written: log decay, at most 0
//   beta [T, HV] float32, written: write strength in [0, 1]
// Source: Gated Delta Networks (arXiv 2412.06464); Mamba-2 (arXiv 2405.21060) for A_log and dt_bias.
inline void gated_delta_net_gating(const Handle& handle,
                                   const TensorView& a,
                                   const TensorView& b,
                                   const TensorView& A_log,
                                   const TensorView& dt_bias,
                                   const TensorView& g,
                                   const TensorView& beta) {
  clover_gated_delta_net_gating_args args{};
  args.struct_size = sizeof(args);
  args.a = a.abi();
  args.b = b.abi();
  args.A_log = A_log.abi();
  args.dt_bias = dt_bias.abi();
  args.g = g.abi();
  args.beta = beta.abi();
  const clover_handle abi_handle = handle.abi();
  check(clover_gated_delta_net_gating(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_GATED_DELTA_NET_GATING

#if CLOVER_OPS_DECLARE_GATED_DELTA_RULE
// Gated delta rule (commit). Replay each packed sequence through the gated delta rule, exactly and causally, advancing
// its state.
//   S <- exp(g_t) S; u = beta_t (v_t - S k_t); S <- S + u k_t^T; o_t = scale S q_t
//
//   q [T, H, K] X: queries
//   k [T, H, K] X: keys, of about unit length unless l2norm
//   v [T, HV, V] X: values; value head j uses query-key head j // (HV/H)
//   g [T, HV] float32: log decay
//   beta [T, HV] float32: write strength
//   state [S, HV, V, K] float32, in/out: pool of recurrent states
//   cu_seqlens [N+1] int32: where each sequence starts and ends
//   initial_state_indices [N] int32: slot read; negative: start from zeros
//   final_state_indices [N] int32: slot written; negative: discard
//   o [T, HV, V] X, written: outputs
//   scale: multiplies the output (default K ** -0.5)
//   l2norm: normalise each q and k: times rsqrt(sum of squares + 1e-6) (default false)
//   max_seqlen: longest sequence expected; guides kernel choice only (default T)
// Source: Gated Delta Networks (arXiv 2412.06464), equation 10.
inline void gated_delta_rule(const Handle& handle,
                             const TensorView& q,
                             const TensorView& k,
                             const TensorView& v,
                             const TensorView& g,
                             const TensorView& beta,
                             const TensorView& state,
                             const TensorView& cu_seqlens,
                             const TensorView& initial_state_indices,
                             const TensorView& final_state_indices,
                             std::optional<double> scale,
                             bool l2norm,
                             std::optional<int64_t> max_seqlen,
                             const TensorView& o) {
  clover_gated_delta_rule_args args{};
  args.struct_size = sizeof(args);
  args.q = q.abi();
  args.k = k.abi();
  args.v = v.abi();
  args.g = g.abi();
  args.beta = beta.abi();
  args.state = state.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.initial_state_indices = initial_state_indices.abi();
  args.final_state_indices = final_state_indices.abi();
  args.o = o.abi();
  if (scale) {
    args.scale = *scale;
    args.given |= uint64_t{1} << 0;
  }
  args.l2norm = static_cast<int32_t>(l2norm);
  args.given |= uint64_t{1} << 1;
  if (max_seqlen) {
    args.max_seqlen = *max_seqlen;
    args.given |= uint64_t{1} << 2;
  }
  const clover_handle abi_handle = handle.abi();
  check(clover_gated_delta_rule(&abi_handle, &args));
}

// Bytes of workspace that gated_delta_rule with these arguments may need; no data is read.
inline uint64_t gated_delta_rule_workspace_size(const Handle& handle,
                                                const TensorView& q,
                                                const TensorView& k,
                                                const TensorView& v,
                                                const TensorView& g,
                                                const TensorView& beta,
                                                const TensorView& state,
                                                const TensorView& cu_seqlens,
                                                const TensorView& initial_state_indices,
                                                const TensorView& final_state_indices,
                                                std::optional<double> scale,
                                                bool l2norm,
                                                std::optional<int64_t> max_seqlen,
                                                const TensorView& o) {
  clover_gated_delta_rule_args args{};
  args.struct_size = sizeof(args);
  args.q = q.abi();
  args.k = k.abi();
  args.v = v.abi();
  args.g = g.abi();
  args.beta = beta.abi();
  args.state = state.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.initial_state_indices = initial_state_indices.abi();
  args.final_state_indices = final_state_indices.abi();
  args.o = o.abi();
  if (scale) {
    args.scale = *scale;
    args.given |= uint64_t{1} << 0;
  }
  args.l2norm = static_cast<int32_t>(l2norm);
  args.given |= uint64_t{1} << 1;
  if (max_seqlen) {
    args.max_seqlen = *max_seqlen;
    args.given |= uint64_t{1} << 2;
  }
  const clover_handle abi_handle = handle.abi();
  uint64_t bytes = 0;
  check(clover_gated_delta_rule_workspace_size(&abi_handle, &args, &bytes));
  return bytes;
}
#endif  // CLOVER_OPS_DECLARE_GATED_DELTA_RULE

#if CLOVER_OPS_DECLARE_PREVIEW_GATED_DELTA_RULE
// Preview gated delta rule. Read each packed block against its slot's state, in both directions by default, and leave
// the state as it is.
//   o_t = scale (S_t + R_{t+1}) q_t: S from the slot forwards, R from zero backwards, both by the gated delta rule
//
//   q [T, H, K] X: queries
//   k [T, H, K] X: keys, of about unit length unless l2norm
//   v [T, HV, V] X: values; value head j uses query-key head j // (HV/H)
//   g [T, HV] float32: log decay
//   beta [T, HV] float32: write strength
//   state [S, HV, V, K] float32: pool of recurrent states
//   cu_seqlens [N+1] int32: where each block starts and ends
//   initial_state_indices [N] int32: slot read; negative: start from zeros
//   o [T, HV, V] X, written: outputs
//   scale: multiplies the output (default K ** -0.5)
//   l2norm: normalise each q and k: times rsqrt(sum of squares + 1e-6) (default false)
//   read: which history each token reads (default bidirectional)
//   max_seqlen: longest block expected; guides kernel choice only (default T)
// Source: Gated Delta Networks (arXiv 2412.06464); the bidirectional read as in SANA-WM.
inline void preview_gated_delta_rule(const Handle& handle,
                                     const TensorView& q,
                                     const TensorView& k,
                                     const TensorView& v,
                                     const TensorView& g,
                                     const TensorView& beta,
                                     const TensorView& state,
                                     const TensorView& cu_seqlens,
                                     const TensorView& initial_state_indices,
                                     std::optional<double> scale,
                                     bool l2norm,
                                     Read read,
                                     std::optional<int64_t> max_seqlen,
                                     const TensorView& o) {
  clover_preview_gated_delta_rule_args args{};
  args.struct_size = sizeof(args);
  args.q = q.abi();
  args.k = k.abi();
  args.v = v.abi();
  args.g = g.abi();
  args.beta = beta.abi();
  args.state = state.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.initial_state_indices = initial_state_indices.abi();
  args.o = o.abi();
  if (scale) {
    args.scale = *scale;
    args.given |= uint64_t{1} << 0;
  }
  args.l2norm = static_cast<int32_t>(l2norm);
  args.given |= uint64_t{1} << 1;
  args.read = static_cast<int32_t>(read);
  args.given |= uint64_t{1} << 2;
  if (max_seqlen) {
    args.max_seqlen = *max_seqlen;
    args.given |= uint64_t{1} << 3;
  }
  const clover_handle abi_handle = handle.abi();
  check(clover_preview_gated_delta_rule(&abi_handle, &args));
}

// Bytes of workspace that preview_gated_delta_rule with these arguments may need; no data is read.
inline uint64_t preview_gated_delta_rule_workspace_size(const Handle& handle,
                                                        const TensorView& q,
                                                        const TensorView& k,
                                                        const TensorView& v,
                                                        const TensorView& g,
                                                        const TensorView& beta,
                                                        const TensorView& state,
                                                        const TensorView& cu_seqlens,
                                                        const TensorView& initial_state_indices,
                                                        std::optional<double> scale,
                                                        bool l2norm,
                                                        Read read,
                                                        std::optional<int64_t> max_seqlen,
                                                        const TensorView& o) {
  clover_preview_gated_delta_rule_args args{};
  args.struct_size = sizeof(args);
  args.q = q.abi();
  args.k = k.abi();
  args.v = v.abi();
  args.g = g.abi();
  args.beta = beta.abi();
  args.state = state.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.initial_state_indices = initial_state_indices.abi();
  args.o = o.abi();
  if (scale) {
    args.scale = *scale;
    args.given |= uint64_t{1} << 0;
  }
  args.l2norm = static_cast<int32_t>(l2norm);
  args.given |= uint64_t{1} << 1;
  args.read = static_cast<int32_t>(read);
  args.given |= uint64_t{1} << 2;
  if (max_seqlen) {
    args.max_seqlen = *max_seqlen;
    args.given |= uint64_t{1} << 3;
  }
  const clover_handle abi_handle = handle.abi();
  uint64_t bytes = 0;
  check(clover_preview_gated_delta_rule_workspace_size(&abi_handle, &args, &bytes));
  return bytes;
}
#endif  // CLOVER_OPS_DECLARE_PREVIEW_GATED_DELTA_RULE

#if CLOVER_OPS_DECLARE_PREVIEW_GDN
// Preview of a whole GDN layer core. Preview convolution with silu, gating, bidirectional delta rule with l2norm, and
// the gated norm in one call.
//   q | k | v = preview_conv1d(qkv, silu); g, beta = gating(a, b); o = preview_gated_delta_rule(q, k, v, g, beta);
// rms_norm_gated
//
//   qkv [T, C] X: projected q | k | v, before the convolution
//   a [T, HV] X: decay projection
//   b [T, HV] X: write-strength projection
//   z [T, HV, V] X, optional: output gate
//   conv_weight [C, KC] X: one filter per channel, oldest tap first
//   conv_bias [C] X, optional: added before the silu
//   conv_state [SC, C, KC-1] X: pool of past inputs, oldest first
//   A_log [HV] float32: logarithm of the decay rate
//   dt_bias [HV] X: added to a
//   state [S, HV, V, K] float32: pool of recurrent states
//   cu_seqlens [N+1] int32: where each block starts and ends
//   initial_state_indices [N] int32: slot read in both pools; negative: start from zeros
//   norm_weight [V] X, optional: weight of the gated norm
//   o [T, HV, V] X, written: outputs
//   eps: added to the mean square in the norm (default 1e-06)
//   scale: multiplies the delta rule's output (default K ** -0.5)
//   read: which history each token reads (default bidirectional)
//   max_seqlen: longest block expected; guides kernel choice only (default T)
// Source: Gated Delta Networks (arXiv 2412.06464), figure 1; Qwen3-Next for the layer.
inline void preview_gdn(const Handle& handle,
                        const TensorView& qkv,
                        const TensorView& a,
                        const TensorView& b,
                        const std::optional<TensorView>& z,
                        const TensorView& conv_weight,
                        const std::optional<TensorView>& conv_bias,
                        const TensorView& conv_state,
                        const TensorView& A_log,
                        const TensorView& dt_bias,
                        const TensorView& state,
                        const TensorView& cu_seqlens,
                        const TensorView& initial_state_indices,
                        const std::optional<TensorView>& norm_weight,
                        double eps,
                        std::optional<double> scale,
                        Read read,
                        std::optional<int64_t> max_seqlen,
                        const TensorView& o) {
  clover_preview_gdn_args args{};
  args.struct_size = sizeof(args);
  args.qkv = qkv.abi();
  args.a = a.abi();
  args.b = b.abi();
  args.z = z ? z->abi() : nullptr;
  args.conv_weight = conv_weight.abi();
  args.conv_bias = conv_bias ? conv_bias->abi() : nullptr;
  args.conv_state = conv_state.abi();
  args.A_log = A_log.abi();
  args.dt_bias = dt_bias.abi();
  args.state = state.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.initial_state_indices = initial_state_indices.abi();
  args.norm_weight = norm_weight ? norm_weight->abi() : nullptr;
  args.o = o.abi();
  args.eps = eps;
  args.given |= uint64_t{1} << 0;
  if (scale) {
    args.scale = *scale;
    args.given |= uint64_t{1} << 1;
  }
  args.read = static_cast<int32_t>(read);
  args.given |= uint64_t{1} << 2;
  if (max_seqlen) {
    args.max_seqlen = *max_seqlen;
    args.given |= uint64_t{1} << 3;
  }
  const clover_handle abi_handle = handle.abi();
  check(clover_preview_gdn(&abi_handle, &args));
}

// Bytes of workspace that preview_gdn with these arguments may need; no data is read.
inline uint64_t preview_gdn_workspace_size(const Handle& handle,
                                           const TensorView& qkv,
                                           const TensorView& a,
                                           const TensorView& b,
                                           const std::optional<TensorView>& z,
                                           const TensorView& conv_weight,
                                           const std::optional<TensorView>& conv_bias,
                                           const TensorView& conv_state,
                                           const TensorView& A_log,
                                           const TensorView& dt_bias,
                                           const TensorView& state,
                                           const TensorView& cu_seqlens,
                                           const TensorView& initial_state_indices,
                                           const std::optional<TensorView>& norm_weight,
                                           double eps,
                                           std::optional<double> scale,
                                           Read read,
                                           std::optional<int64_t> max_seqlen,
                                           const TensorView& o) {
  clover_preview_gdn_args args{};
  args.struct_size = sizeof(args);
  args.qkv = qkv.abi();
  args.a = a.abi();
  args.b = b.abi();
  args.z = z ? z->abi() : nullptr;
  args.conv_weight = conv_weight.abi();
  args.conv_bias = conv_bias ? conv_bias->abi() : nullptr;
  args.conv_state = conv_state.abi();
  args.A_log = A_log.abi();
  args.dt_bias = dt_bias.abi();
  args.state = state.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.initial_state_indices = initial_state_indices.abi();
  args.norm_weight = norm_weight ? norm_weight->abi() : nullptr;
  args.o = o.abi();
  args.eps = eps;
  args.given |= uint64_t{1} << 0;
  if (scale) {
    args.scale = *scale;
    args.given |= uint64_t{1} << 1;
  }
  args.read = static_cast<int32_t>(read);
  args.given |= uint64_t{1} << 2;
  if (max_seqlen) {
    args.max_seqlen = *max_seqlen;
    args.given |= uint64_t{1} << 3;
  }
  const clover_handle abi_handle = handle.abi();
  uint64_t bytes = 0;
  check(clover_preview_gdn_workspace_size(&abi_handle, &args, &bytes));
  return bytes;
}
#endif  // CLOVER_OPS_DECLARE_PREVIEW_GDN

#if CLOVER_OPS_DECLARE_TOPK_SOFTMAX
// Top-k routing. Choose each token's k best experts by logit and weight them by the softmax over all experts.
//   ids = the k largest logits (ties to the lower index); weights = softmax(logits)[ids], optionally renormalised
//
//   logits [T, E] X: router logits
//   ids [T, k] int32, written: chosen experts, best first; -1 where a row has none
//   weights [T, k] float32, written: their weights
//   k: experts per token
//   renormalize: divide by the sum over the chosen experts (default false)
// Source: Switch Transformers (arXiv 2101.03961); Qwen3-MoE.
inline void topk_softmax(const Handle& handle,
                         const TensorView& logits,
                         int64_t k,
                         bool renormalize,
                         const TensorView& ids,
                         const TensorView& weights) {
  clover_topk_softmax_args args{};
  args.struct_size = sizeof(args);
  args.logits = logits.abi();
  args.ids = ids.abi();
  args.weights = weights.abi();
  args.k = k;
  args.given |= uint64_t{1} << 0;
  args.renormalize = static_cast<int32_t>(renormalize);
  args.given |= uint64_t{1} << 1;
  const clover_handle abi_handle = handle.abi();
  check(clover_topk_softmax(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_TOPK_SOFTMAX

#if CLOVER_OPS_DECLARE_BLOCK_CORESET
// Block expert coreset. Keep the experts that a block of tokens wants most, then route every token of the block among
// them.
//   score = votes or maxima of the live tokens' softmax; coreset = the budget best; ids = top-k of logits within the
// coreset
//
//   logits [T, E] X: router logits
//   cu_seqlens [N+1] int32: where each block starts and ends
//   live [T] bool, optional: tokens that vote; all when absent
//   coreset [N, E] bool, written: experts that each block keeps
//   ids [T, k] int32, written: chosen experts, best first; -1 where a row has none
//   weights [T, k] float32, written: their weights
//   k: experts per token
//   budget: experts per block at most
//   mode: how a block scores an expert (default vote)
//   top_p: keep only the shortest prefix that reaches this share of the score (may be left out)
//   renormalize: divide by the sum over the chosen experts (default false)
// Source: Dynamic Expert Sharing (arXiv 2602.00879) for the vote; LLaDA2.2 block routing for max; dMoE (arXiv
// 2605.30876) for top_p.
inline void block_coreset(const Handle& handle,
                          const TensorView& logits,
                          const TensorView& cu_seqlens,
                          const std::optional<TensorView>& live,
                          int64_t k,
                          int64_t budget,
                          Mode mode,
                          std::optional<double> top_p,
                          bool renormalize,
                          const TensorView& coreset,
                          const TensorView& ids,
                          const TensorView& weights) {
  clover_block_coreset_args args{};
  args.struct_size = sizeof(args);
  args.logits = logits.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.live = live ? live->abi() : nullptr;
  args.coreset = coreset.abi();
  args.ids = ids.abi();
  args.weights = weights.abi();
  args.k = k;
  args.given |= uint64_t{1} << 0;
  args.budget = budget;
  args.given |= uint64_t{1} << 1;
  args.mode = static_cast<int32_t>(mode);
  args.given |= uint64_t{1} << 2;
  if (top_p) {
    args.top_p = *top_p;
    args.given |= uint64_t{1} << 3;
  }
  args.renormalize = static_cast<int32_t>(renormalize);
  args.given |= uint64_t{1} << 4;
  const clover_handle abi_handle = handle.abi();
  check(clover_block_coreset(&abi_handle, &args));
}

// Bytes of workspace that block_coreset with these arguments may need; no data is read.
inline uint64_t block_coreset_workspace_size(const Handle& handle,
                                             const TensorView& logits,
                                             const TensorView& cu_seqlens,
                                             const std::optional<TensorView>& live,
                                             int64_t k,
                                             int64_t budget,
                                             Mode mode,
                                             std::optional<double> top_p,
                                             bool renormalize,
                                             const TensorView& coreset,
                                             const TensorView& ids,
                                             const TensorView& weights) {
  clover_block_coreset_args args{};
  args.struct_size = sizeof(args);
  args.logits = logits.abi();
  args.cu_seqlens = cu_seqlens.abi();
  args.live = live ? live->abi() : nullptr;
  args.coreset = coreset.abi();
  args.ids = ids.abi();
  args.weights = weights.abi();
  args.k = k;
  args.given |= uint64_t{1} << 0;
  args.budget = budget;
  args.given |= uint64_t{1} << 1;
  args.mode = static_cast<int32_t>(mode);
  args.given |= uint64_t{1} << 2;
  if (top_p) {
    args.top_p = *top_p;
    args.given |= uint64_t{1} << 3;
  }
  args.renormalize = static_cast<int32_t>(renormalize);
  args.given |= uint64_t{1} << 4;
  const clover_handle abi_handle = handle.abi();
  uint64_t bytes = 0;
  check(clover_block_coreset_workspace_size(&abi_handle, &args, &bytes));
  return bytes;
}
#endif  // CLOVER_OPS_DECLARE_BLOCK_CORESET

#if CLOVER_OPS_DECLARE_LIVE_ROW_ROUTES
// Routes of live rows. Drop the routes of rows that are not live and list the rows that are.
//   ids' = live ? ids : -1; weights' = live ? weights : 0; rows = the live rows in order, then -1
//
//   ids [T, k] int32: routes of all rows
//   weights [T, k] float32: weights of all rows
//   live [T] bool: rows to keep
//   live_ids [T, k] int32, written: routes; -1 in rows that are not live
//   live_weights [T, k] float32, written: weights; 0 in rows that are not live
//   rows [T] int32, written: the live rows in order, then -1
//   count [1] int32, written: how many rows are live
// Source: Clover.
inline void live_row_routes(const Handle& handle,
                            const TensorView& ids,
                            const TensorView& weights,
                            const TensorView& live,
                            const TensorView& live_ids,
                            const TensorView& live_weights,
                            const TensorView& rows,
                            const TensorView& count) {
  clover_live_row_routes_args args{};
  args.struct_size = sizeof(args);
  args.ids = ids.abi();
  args.weights = weights.abi();
  args.live = live.abi();
  args.live_ids = live_ids.abi();
  args.live_weights = live_weights.abi();
  args.rows = rows.abi();
  args.count = count.abi();
  const clover_handle abi_handle = handle.abi();
  check(clover_live_row_routes(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_LIVE_ROW_ROUTES

#if CLOVER_OPS_DECLARE_MERGE_LIVE_ROWS
// Merge of live rows. Take live rows fresh and refresh the cache with them; take the others from the cache, bit for
// bit.
//   out = live ? fresh : cache; cache = out
//
//   fresh [T, D] X: new rows; anything, NaN included, where not live
//   cache [T, D] X, in/out: rows of the last step
//   live [T] bool: rows to take from fresh
//   out [T, D] X, written: merged rows
// Source: Clover.
inline void merge_live_rows(const Handle& handle,
                            const TensorView& fresh,
                            const TensorView& cache,
                            const TensorView& live,
                            const TensorView& out) {
  clover_merge_live_rows_args args{};
  args.struct_size = sizeof(args);
  args.fresh = fresh.abi();
  args.cache = cache.abi();
  args.live = live.abi();
  args.out = out.abi();
  const clover_handle abi_handle = handle.abi();
  check(clover_merge_live_rows(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_MERGE_LIVE_ROWS

#if CLOVER_OPS_DECLARE_FUSED_MOE
// Mixture of experts. Run each token through its experts and the shared expert, and add their outputs by weight.
//   y_t = routed_scale * sum_j weights[t, j] * w2[e] (silu(w1 x_t) * (w3 x_t)), e = ids[t, j]; plus the shared expert
//
//   x [T, D] X: hidden states
//   w13 [E, 2*I, D] X: gate rows, then up rows, of each expert
//   w2 [E, D, I] X: down projection of each expert
//   ids [T, k] int32: routes; -1 is skipped
//   weights [T, k] float32: weight of each route
//   shared_w13 [2*Is, D] X, optional: gate and up rows of the shared expert
//   shared_w2 [D, Is] X, optional: down projection of the shared expert
//   shared_gate [D] X, optional: the shared expert is times sigmoid(x . shared_gate)
//   y [T, D] X, written: outputs
//   routed_scale: multiplies the routed sum (default 1.0)
//   weight_layout: layout of w13 and w2; others are reserved (default dense)
// Source: Qwen3-MoE; DeepSeekMoE (arXiv 2401.06066) for the shared expert.
inline void fused_moe(const Handle& handle,
                      const TensorView& x,
                      const TensorView& w13,
                      const TensorView& w2,
                      const TensorView& ids,
                      const TensorView& weights,
                      const std::optional<TensorView>& shared_w13,
                      const std::optional<TensorView>& shared_w2,
                      const std::optional<TensorView>& shared_gate,
                      double routed_scale,
                      WeightLayout weight_layout,
                      const TensorView& y) {
  clover_fused_moe_args args{};
  args.struct_size = sizeof(args);
  args.x = x.abi();
  args.w13 = w13.abi();
  args.w2 = w2.abi();
  args.ids = ids.abi();
  args.weights = weights.abi();
  args.shared_w13 = shared_w13 ? shared_w13->abi() : nullptr;
  args.shared_w2 = shared_w2 ? shared_w2->abi() : nullptr;
  args.shared_gate = shared_gate ? shared_gate->abi() : nullptr;
  args.y = y.abi();
  args.routed_scale = routed_scale;
  args.given |= uint64_t{1} << 0;
  args.weight_layout = static_cast<int32_t>(weight_layout);
  args.given |= uint64_t{1} << 1;
  const clover_handle abi_handle = handle.abi();
  check(clover_fused_moe(&abi_handle, &args));
}

// Bytes of workspace that fused_moe with these arguments may need; no data is read.
inline uint64_t fused_moe_workspace_size(const Handle& handle,
                                         const TensorView& x,
                                         const TensorView& w13,
                                         const TensorView& w2,
                                         const TensorView& ids,
                                         const TensorView& weights,
                                         const std::optional<TensorView>& shared_w13,
                                         const std::optional<TensorView>& shared_w2,
                                         const std::optional<TensorView>& shared_gate,
                                         double routed_scale,
                                         WeightLayout weight_layout,
                                         const TensorView& y) {
  clover_fused_moe_args args{};
  args.struct_size = sizeof(args);
  args.x = x.abi();
  args.w13 = w13.abi();
  args.w2 = w2.abi();
  args.ids = ids.abi();
  args.weights = weights.abi();
  args.shared_w13 = shared_w13 ? shared_w13->abi() : nullptr;
  args.shared_w2 = shared_w2 ? shared_w2->abi() : nullptr;
  args.shared_gate = shared_gate ? shared_gate->abi() : nullptr;
  args.y = y.abi();
  args.routed_scale = routed_scale;
  args.given |= uint64_t{1} << 0;
  args.weight_layout = static_cast<int32_t>(weight_layout);
  args.given |= uint64_t{1} << 1;
  const clover_handle abi_handle = handle.abi();
  uint64_t bytes = 0;
  check(clover_fused_moe_workspace_size(&abi_handle, &args, &bytes));
  return bytes;
}
#endif  // CLOVER_OPS_DECLARE_FUSED_MOE

#if CLOVER_OPS_DECLARE_ROTARY_EMBEDDING
// Rotary embedding. Rotate the first RD dimensions of q and k by each token's position, in place.
//   (x1, x2) <- (x1 cos - x2 sin, x2 cos + x1 sin) over pairs (i, i + RD/2), or (2i, 2i + 1) when interleaved
//
//   positions [T] int32: row of cos_sin for each token
//   q [T, A, AD] X, in/out: queries
//   k [T, AKV, AD] X, in/out: keys
//   cos_sin [P, RD] X: RD/2 cosines, then RD/2 sines, per position
//   interleaved: pair neighbours instead of halves (default false)
// Source: RoFormer (arXiv 2104.09864).
inline void rotary_embedding(const Handle& handle,
                             const TensorView& positions,
                             const TensorView& q,
                             const TensorView& k,
                             const TensorView& cos_sin,
                             bool interleaved) {
  clover_rotary_embedding_args args{};
  args.struct_size = sizeof(args);
  args.positions = positions.abi();
  args.q = q.abi();
  args.k = k.abi();
  args.cos_sin = cos_sin.abi();
  args.interleaved = static_cast<int32_t>(interleaved);
  args.given |= uint64_t{1} << 0;
  const clover_handle abi_handle = handle.abi();
  check(clover_rotary_embedding(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_ROTARY_EMBEDDING

#if CLOVER_OPS_DECLARE_REARRANGE
// Strided copy. Copy any strided tensor into any other of the same shape and dtype.
//   dst[...] = src[...]
//
//   src [...] element: what to copy
//   dst [...] element, written: where to copy it
// Source: InfiniCore rearrange.
inline void rearrange(const Handle& handle,
                      const TensorView& src,
                      const TensorView& dst) {
  clover_rearrange_args args{};
  args.struct_size = sizeof(args);
  args.src = src.abi();
  args.dst = dst.abi();
  const clover_handle abi_handle = handle.abi();
  check(clover_rearrange(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_REARRANGE

#if CLOVER_OPS_DECLARE_CAST
// Strided cast. Convert between BF16, FP16 and FP32, strided on either side, rounding to nearest even.
//   dst[...] = round(src[...]); overflow gives Inf, NaN stays NaN
//
//   src [...] X: what to convert
//   dst [...] Y, written: where to store it
// Source: IEEE 754 conversions.
inline void cast(const Handle& handle,
                 const TensorView& src,
                 const TensorView& dst) {
  clover_cast_args args{};
  args.struct_size = sizeof(args);
  args.src = src.abi();
  args.dst = dst.abi();
  const clover_handle abi_handle = handle.abi();
  check(clover_cast(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_CAST

#if CLOVER_OPS_DECLARE_RMS_NORM_GATED
// Gated RMS norm. Normalise each head's vector by its root mean square and gate it with silu(z).
//   y = x * rsqrt(mean(x^2) + eps) * weight * silu(z)
//
//   x [T, HV, V] X: inputs
//   weight [V] X: scale of each dimension
//   z [T, HV, V] X: gate
//   y [T, HV, V] X, written: outputs
//   eps: added to the mean square (default 1e-06)
// Source: RMSNorm (arXiv 1910.07467); Mamba-2 (arXiv 2405.21060) for the gate.
inline void rms_norm_gated(const Handle& handle,
                           const TensorView& x,
                           const TensorView& weight,
                           const TensorView& z,
                           double eps,
                           const TensorView& y) {
  clover_rms_norm_gated_args args{};
  args.struct_size = sizeof(args);
  args.x = x.abi();
  args.weight = weight.abi();
  args.z = z.abi();
  args.y = y.abi();
  args.eps = eps;
  args.given |= uint64_t{1} << 0;
  const clover_handle abi_handle = handle.abi();
  check(clover_rms_norm_gated(&abi_handle, &args));
}
#endif  // CLOVER_OPS_DECLARE_RMS_NORM_GATED

}  // namespace clover
