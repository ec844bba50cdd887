/* Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit. */
#ifndef CLOVER_ABI_OPS_H_
#define CLOVER_ABI_OPS_H_

#include <clover/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Permanent operator numbers. */
enum {
  CLOVER_OP_causal_conv1d = 1,
  CLOVER_OP_preview_conv1d = 2,
  CLOVER_OP_gated_delta_net_gating = 3,
  CLOVER_OP_gated_delta_rule = 4,
  CLOVER_OP_preview_gated_delta_rule = 5,
  CLOVER_OP_preview_gdn = 6,
  CLOVER_OP_topk_softmax = 7,
  CLOVER_OP_block_coreset = 8,
  CLOVER_OP_live_row_routes = 9,
  CLOVER_OP_merge_live_rows = 10,
  CLOVER_OP_fused_moe = 11,
  CLOVER_OP_rotary_embedding = 12,
  CLOVER_OP_rearrange = 13,
  CLOVER_OP_cast = 14,
  CLOVER_OP_rms_norm_gated = 15,
};

/* In every struct `given` says which attributes the caller set (bit i: attribute i, in order); the others take
 * their defaults. Providers receive a copy with the defaults filled in. In `dims` is each symbol's value. */

enum { CLOVER_causal_conv1d_activation_none = 0, CLOVER_causal_conv1d_activation_silu = 1 };
typedef struct clover_causal_conv1d_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* x; /* [T, C], X, const */
  const clover_tensor* weight; /* [C, KC], X, const */
  const clover_tensor* bias; /* [C], X, const, or null */
  const clover_tensor* conv_state; /* [S, C, KC-1], X, in/out */
  const clover_tensor* cu_seqlens; /* [N+1], int32, const */
  const clover_tensor* initial_state_indices; /* [N], int32, const */
  const clover_tensor* final_state_indices; /* [N], int32, const */
  const clover_tensor* y; /* [T, C], X, out */
  int32_t activation; /* given: bit 0 */
  int64_t max_seqlen; /* given: bit 1 */
} clover_causal_conv1d_args;

typedef struct clover_causal_conv1d_dims {
  int64_t T;
  int64_t C;
  int64_t KC;
  int64_t S;
  int64_t N;
} clover_causal_conv1d_dims;

CLOVER_EXPORT int32_t clover_causal_conv1d(const clover_handle* handle, const clover_causal_conv1d_args* args);

enum { CLOVER_preview_conv1d_activation_none = 0, CLOVER_preview_conv1d_activation_silu = 1 };
typedef struct clover_preview_conv1d_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* x; /* [T, C], X, const */
  const clover_tensor* weight; /* [C, KC], X, const */
  const clover_tensor* bias; /* [C], X, const, or null */
  const clover_tensor* conv_state; /* [S, C, KC-1], X, const */
  const clover_tensor* cu_seqlens; /* [N+1], int32, const */
  const clover_tensor* initial_state_indices; /* [N], int32, const */
  const clover_tensor* y; /* [T, C], X, out */
  int32_t activation; /* given: bit 0 */
  int64_t max_seqlen; /* given: bit 1 */
} clover_preview_conv1d_args;

typedef struct clover_preview_conv1d_dims {
  int64_t T;
  int64_t C;
  int64_t KC;
  int64_t S;
  int64_t N;
} clover_preview_conv1d_dims;

CLOVER_EXPORT int32_t clover_preview_conv1d(const clover_handle* handle, const clover_preview_conv1d_args* args);

typedef struct clover_gated_delta_net_gating_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* a; /* [T, HV], X, const */
  const clover_tensor* b; /* [T, HV], X, const */
  const clover_tensor* A_log; /* [HV], float32, const */
  const clover_tensor* dt_bias; /* [HV], X, const */
  const clover_tensor* g; /* [T, HV], float32, out */
  const clover_tensor* beta; /* [T, HV], float32, out */
} clover_gated_delta_net_gating_args;

typedef struct clover_gated_delta_net_gating_dims {
  int64_t T;
  int64_t HV;
} clover_gated_delta_net_gating_dims;

CLOVER_EXPORT int32_t clover_gated_delta_net_gating(const clover_handle* handle, const clover_gated_delta_net_gating_args* args);

typedef struct clover_gated_delta_rule_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* q; /* [T, H, K], X, const */
  const clover_tensor* k; /* [T, H, K], X, const */
  const clover_tensor* v; /* [T, HV, V], X, const */
  const clover_tensor* g; /* [T, HV], float32, const */
  const clover_tensor* beta; /* [T, HV], float32, const */
  const clover_tensor* state; /* [S, HV, V, K], float32, in/out */
  const clover_tensor* cu_seqlens; /* [N+1], int32, const */
  const clover_tensor* initial_state_indices; /* [N], int32, const */
  const clover_tensor* final_state_indices; /* [N], int32, const */
  const clover_tensor* o; /* [T, HV, V], X, out */
  double scale; /* given: bit 0 */
  int32_t l2norm; /* given: bit 1 */
  int64_t max_seqlen; /* given: bit 2 */
} clover_gated_delta_rule_args;

typedef struct clover_gated_delta_rule_dims {
  int64_t T;
  int64_t H;
  int64_t K;
  int64_t HV;
  int64_t V;
  int64_t S;
  int64_t N;
} clover_gated_delta_rule_dims;

CLOVER_EXPORT int32_t clover_gated_delta_rule(const clover_handle* handle, const clover_gated_delta_rule_args* args);
CLOVER_EXPORT int32_t clover_gated_delta_rule_workspace_size(const clover_handle* handle, const clover_gated_delta_rule_args* args,
                                                             uint64_t* bytes);

enum { CLOVER_preview_gated_delta_rule_read_bidirectional = 0, CLOVER_preview_gated_delta_rule_read_block = 1, CLOVER_preview_gated_delta_rule_read_causal = 2 };
typedef struct clover_preview_gated_delta_rule_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* q; /* [T, H, K], X, const */
  const clover_tensor* k; /* [T, H, K], X, const */
  const clover_tensor* v; /* [T, HV, V], X, const */
  const clover_tensor* g; /* [T, HV], float32, const */
  const clover_tensor* beta; /* [T, HV], float32, const */
  const clover_tensor* state; /* [S, HV, V, K], float32, const */
  const clover_tensor* cu_seqlens; /* [N+1], int32, const */
  const clover_tensor* initial_state_indices; /* [N], int32, const */
  const clover_tensor* o; /* [T, HV, V], X, out */
  double scale; /* given: bit 0 */
  int32_t l2norm; /* given: bit 1 */
  int32_t read; /* given: bit 2 */
  int64_t max_seqlen; /* given: bit 3 */
} clover_preview_gated_delta_rule_args;

typedef struct clover_preview_gated_delta_rule_dims {
  int64_t T;
  int64_t H;
  int64_t K;
  int64_t HV;
  int64_t V;
  int64_t S;
  int64_t N;
} clover_preview_gated_delta_rule_dims;

CLOVER_EXPORT int32_t clover_preview_gated_delta_rule(const clover_handle* handle, const clover_preview_gated_delta_rule_args* args);
CLOVER_EXPORT int32_t clover_preview_gated_delta_rule_workspace_size(const clover_handle* handle, const clover_preview_gated_delta_rule_args* args,
                                                                     uint64_t* bytes);

enum { CLOVER_preview_gdn_read_bidirectional = 0, CLOVER_preview_gdn_read_block = 1, CLOVER_preview_gdn_read_causal = 2 };
typedef struct clover_preview_gdn_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* qkv; /* [T, C], X, const */
  const clover_tensor* a; /* [T, HV], X, const */
  const clover_tensor* b; /* [T, HV], X, const */
  const clover_tensor* z; /* [T, HV, V], X, const, or null */
  const clover_tensor* conv_weight; /* [C, KC], X, const */
  const clover_tensor* conv_bias; /* [C], X, const, or null */
  const clover_tensor* conv_state; /* [SC, C, KC-1], X, const */
  const clover_tensor* A_log; /* [HV], float32, const */
  const clover_tensor* dt_bias; /* [HV], X, const */
  const clover_tensor* state; /* [S, HV, V, K], float32, const */
  const clover_tensor* cu_seqlens; /* [N+1], int32, const */
  const clover_tensor* initial_state_indices; /* [N], int32, const */
  const clover_tensor* norm_weight; /* [V], X, const, or null */
  const clover_tensor* o; /* [T, HV, V], X, out */
  double eps; /* given: bit 0 */
  double scale; /* given: bit 1 */
  int32_t read; /* given: bit 2 */
  int64_t max_seqlen; /* given: bit 3 */
} clover_preview_gdn_args;

typedef struct clover_preview_gdn_dims {
  int64_t T;
  int64_t C;
  int64_t HV;
  int64_t V;
  int64_t KC;
  int64_t SC;
  int64_t S;
  int64_t K;
  int64_t N;
  int64_t H;
} clover_preview_gdn_dims;

CLOVER_EXPORT int32_t clover_preview_gdn(const clover_handle* handle, const clover_preview_gdn_args* args);
CLOVER_EXPORT int32_t clover_preview_gdn_workspace_size(const clover_handle* handle, const clover_preview_gdn_args* args,
                                                        uint64_t* bytes);

typedef struct clover_topk_softmax_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* logits; /* [T, E], X, const */
  const clover_tensor* ids; /* [T, k], int32, out */
  const clover_tensor* weights; /* [T, k], float32, out */
  int64_t k; /* given: bit 0 */
  int32_t renormalize; /* given: bit 1 */
} clover_topk_softmax_args;

typedef struct clover_topk_softmax_dims {
  int64_t T;
  int64_t E;
  int64_t k;
} clover_topk_softmax_dims;

CLOVER_EXPORT int32_t clover_topk_softmax(const clover_handle* handle, const clover_topk_softmax_args* args);

enum { CLOVER_block_coreset_mode_vote = 0, CLOVER_block_coreset_mode_max = 1 };
typedef struct clover_block_coreset_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* logits; /* [T, E], X, const */
  const clover_tensor* cu_seqlens; /* [N+1], int32, const */
  const clover_tensor* live; /* [T], bool, const, or null */
  const clover_tensor* coreset; /* [N, E], bool, out */
  const clover_tensor* ids; /* [T, k], int32, out */
  const clover_tensor* weights; /* [T, k], float32, out */
  int64_t k; /* given: bit 0 */
  int64_t budget; /* given: bit 1 */
  int32_t mode; /* given: bit 2 */
  double top_p; /* given: bit 3 */
  int32_t renormalize; /* given: bit 4 */
} clover_block_coreset_args;

typedef struct clover_block_coreset_dims {
  int64_t T;
  int64_t E;
  int64_t N;
  int64_t k;
  int64_t budget;
} clover_block_coreset_dims;

CLOVER_EXPORT int32_t clover_block_coreset(const clover_handle* handle, const clover_block_coreset_args* args);
CLOVER_EXPORT int32_t clover_block_coreset_workspace_size(const clover_handle* handle, const clover_block_coreset_args* args,
                                                          uint64_t* bytes);

typedef struct clover_live_row_routes_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* ids; /* [T, k], int32, const */
  const clover_tensor* weights; /* [T, k], float32, const */
  const clover_tensor* live; /* [T], bool, const */
  const clover_tensor* live_ids; /* [T, k], int32, out */
  const clover_tensor* live_weights; /* [T, k], float32, out */
  const clover_tensor* rows; /* [T], int32, out */
  const clover_tensor* count; /* [1], int32, out */
} clover_live_row_routes_args;

typedef struct clover_live_row_routes_dims {
  int64_t T;
  int64_t k;
} clover_live_row_routes_dims;

CLOVER_EXPORT int32_t clover_live_row_routes(const clover_handle* handle, const clover_live_row_routes_args* args);

typedef struct clover_merge_live_rows_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* fresh; /* [T, D], X, const */
  const clover_tensor* cache; /* [T, D], X, in/out */
  const clover_tensor* live; /* [T], bool, const */
  const clover_tensor* out; /* [T, D], X, out */
} clover_merge_live_rows_args;

typedef struct clover_merge_live_rows_dims {
  int64_t T;
  int64_t D;
} clover_merge_live_rows_dims;

CLOVER_EXPORT int32_t clover_merge_live_rows(const clover_handle* handle, const clover_merge_live_rows_args* args);

enum { CLOVER_fused_moe_weight_layout_dense = 0 };
typedef struct clover_fused_moe_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* x; /* [T, D], X, const */
  const clover_tensor* w13; /* [E, 2*I, D], X, const */
  const clover_tensor* w2; /* [E, D, I], X, const */
  const clover_tensor* ids; /* [T, k], int32, const */
  const clover_tensor* weights; /* [T, k], float32, const */
  const clover_tensor* shared_w13; /* [2*Is, D], X, const, or null */
  const clover_tensor* shared_w2; /* [D, Is], X, const, or null */
  const clover_tensor* shared_gate; /* [D], X, const, or null */
  const clover_tensor* y; /* [T, D], X, out */
  double routed_scale; /* given: bit 0 */
  int32_t weight_layout; /* given: bit 1 */
} clover_fused_moe_args;

typedef struct clover_fused_moe_dims {
  int64_t T;
  int64_t D;
  int64_t E;
  int64_t I;
  int64_t k;
  int64_t Is;
} clover_fused_moe_dims;

CLOVER_EXPORT int32_t clover_fused_moe(const clover_handle* handle, const clover_fused_moe_args* args);
CLOVER_EXPORT int32_t clover_fused_moe_workspace_size(const clover_handle* handle, const clover_fused_moe_args* args,
                                                      uint64_t* bytes);

typedef struct clover_rotary_embedding_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* positions; /* [T], int32, const */
  const clover_tensor* q; /* [T, A, AD], X, in/out */
  const clover_tensor* k; /* [T, AKV, AD], X, in/out */
  const clover_tensor* cos_sin; /* [P, RD], X, const */
  int32_t interleaved; /* given: bit 0 */
} clover_rotary_embedding_args;

typedef struct clover_rotary_embedding_dims {
  int64_t T;
  int64_t A;
  int64_t AD;
  int64_t AKV;
  int64_t P;
  int64_t RD;
} clover_rotary_embedding_dims;

CLOVER_EXPORT int32_t clover_rotary_embedding(const clover_handle* handle, const clover_rotary_embedding_args* args);

typedef struct clover_rearrange_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* src; /* [...], element, const */
  const clover_tensor* dst; /* [...], element, out */
} clover_rearrange_args;

typedef struct clover_rearrange_dims {
  int64_t none;
} clover_rearrange_dims;

CLOVER_EXPORT int32_t clover_rearrange(const clover_handle* handle, const clover_rearrange_args* args);

typedef struct clover_cast_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* src; /* [...], X, const */
  const clover_tensor* dst; /* [...], Y, out */
} clover_cast_args;

typedef struct clover_cast_dims {
  int64_t none;
} clover_cast_dims;

CLOVER_EXPORT int32_t clover_cast(const clover_handle* handle, const clover_cast_args* args);

typedef struct clover_rms_norm_gated_args {
  uint64_t struct_size;
  uint64_t given;
  const clover_tensor* x; /* [T, HV, V], X, const */
  const clover_tensor* weight; /* [V], X, const */
  const clover_tensor* z; /* [T, HV, V], X, const */
  const clover_tensor* y; /* [T, HV, V], X, out */
  double eps; /* given: bit 0 */
} clover_rms_norm_gated_args;

typedef struct clover_rms_norm_gated_dims {
  int64_t T;
  int64_t HV;
  int64_t V;
} clover_rms_norm_gated_dims;

CLOVER_EXPORT int32_t clover_rms_norm_gated(const clover_handle* handle, const clover_rms_norm_gated_args* args);

#ifdef __cplusplus
}
#endif

#endif /* CLOVER_ABI_OPS_H_ */
