// Generated from common/schema/operators.toml by common/declgen; run `nox -s gen` to renew. Do not edit.
#include "spec.hpp"

#include <cmath>
#include <limits>

namespace clover {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace causal_conv1d {
const char* const symbols[] = {"T", "C", "KC", "S", "N"};
const TensorSpec tensors[] = {
    {"x", "[T, C]", offsetof(clover_causal_conv1d_args, x), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "C"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"weight", "[C, KC]", offsetof(clover_causal_conv1d_args, weight), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{1, 1, 0, "C"}, {2, 1, 0, "KC"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"bias", "[C]", offsetof(clover_causal_conv1d_args, bias), Role::kIn, Strides::kLast, Values::kNone, true, 1,
     {{1, 1, 0, "C"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"conv_state", "[S, C, KC-1]", offsetof(clover_causal_conv1d_args, conv_state), Role::kInOut, Strides::kLast, Values::kNone, false, 3,
     {{3, 1, 0, "S"}, {1, 1, 0, "C"}, {2, 1, -1, "KC-1"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"cu_seqlens", "[N+1]", offsetof(clover_causal_conv1d_args, cu_seqlens), Role::kIn, Strides::kLast, Values::kCuSeqlens, false, 1,
     {{4, 1, 1, "N+1"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"initial_state_indices", "[N]", offsetof(clover_causal_conv1d_args, initial_state_indices), Role::kIn, Strides::kLast, Values::kInitialSlots, false, 1,
     {{4, 1, 0, "N"}}, {"int32", -1, kBitInt32}, {3, -1}},
    {"final_state_indices", "[N]", offsetof(clover_causal_conv1d_args, final_state_indices), Role::kIn, Strides::kLast, Values::kFinalSlots, false, 1,
     {{4, 1, 0, "N"}}, {"int32", -1, kBitInt32}, {3, -1}},
    {"y", "[T, C]", offsetof(clover_causal_conv1d_args, y), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "C"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
const char* const activation_choices[] = {"none", "silu"};
const AttributeSpec attributes[] = {
    {"activation", offsetof(clover_causal_conv1d_args, activation), AttributeType::kEnum, false, -1, -kInfinity, kInfinity, false,
     activation_choices, 2, [](const int64_t*) -> double { return 0; }},
    {"max_seqlen", offsetof(clover_causal_conv1d_args, max_seqlen), AttributeType::kInt, false, -1, 0, kInfinity, false,
     nullptr, 0, [](const int64_t* d) -> double { return static_cast<double>(d[0]); }},
};
const int16_t rule0_symbols[] = {2};
const RuleSpec rules[] = {
    {"KC >= 1", [](const int64_t* d) -> bool { return d[2] >= 1; }, rule0_symbols, 1},
};
}  // namespace causal_conv1d

namespace preview_conv1d {
const char* const symbols[] = {"T", "C", "KC", "S", "N"};
const TensorSpec tensors[] = {
    {"x", "[T, C]", offsetof(clover_preview_conv1d_args, x), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "C"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"weight", "[C, KC]", offsetof(clover_preview_conv1d_args, weight), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{1, 1, 0, "C"}, {2, 1, 0, "KC"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"bias", "[C]", offsetof(clover_preview_conv1d_args, bias), Role::kIn, Strides::kLast, Values::kNone, true, 1,
     {{1, 1, 0, "C"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"conv_state", "[S, C, KC-1]", offsetof(clover_preview_conv1d_args, conv_state), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{3, 1, 0, "S"}, {1, 1, 0, "C"}, {2, 1, -1, "KC-1"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"cu_seqlens", "[N+1]", offsetof(clover_preview_conv1d_args, cu_seqlens), Role::kIn, Strides::kLast, Values::kCuSeqlens, false, 1,
     {{4, 1, 1, "N+1"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"initial_state_indices", "[N]", offsetof(clover_preview_conv1d_args, initial_state_indices), Role::kIn, Strides::kLast, Values::kInitialSlots, false, 1,
     {{4, 1, 0, "N"}}, {"int32", -1, kBitInt32}, {3, -1}},
    {"y", "[T, C]", offsetof(clover_preview_conv1d_args, y), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "C"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
const char* const activation_choices[] = {"none", "silu"};
const AttributeSpec attributes[] = {
    {"activation", offsetof(clover_preview_conv1d_args, activation), AttributeType::kEnum, false, -1, -kInfinity, kInfinity, false,
     activation_choices, 2, [](const int64_t*) -> double { return 0; }},
    {"max_seqlen", offsetof(clover_preview_conv1d_args, max_seqlen), AttributeType::kInt, false, -1, 0, kInfinity, false,
     nullptr, 0, [](const int64_t* d) -> double { return static_cast<double>(d[0]); }},
};
const int16_t rule0_symbols[] = {2};
const RuleSpec rules[] = {
    {"KC >= 1", [](const int64_t* d) -> bool { return d[2] >= 1; }, rule0_symbols, 1},
};
}  // namespace preview_conv1d

namespace gated_delta_net_gating {
const char* const symbols[] = {"T", "HV"};
const TensorSpec tensors[] = {
    {"a", "[T, HV]", offsetof(clover_gated_delta_net_gating_args, a), Role::kIn, Strides::kAny, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "HV"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"b", "[T, HV]", offsetof(clover_gated_delta_net_gating_args, b), Role::kIn, Strides::kAny, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "HV"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"A_log", "[HV]", offsetof(clover_gated_delta_net_gating_args, A_log), Role::kIn, Strides::kLast, Values::kNone, false, 1,
     {{1, 1, 0, "HV"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"dt_bias", "[HV]", offsetof(clover_gated_delta_net_gating_args, dt_bias), Role::kIn, Strides::kLast, Values::kNone, false, 1,
     {{1, 1, 0, "HV"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"g", "[T, HV]", offsetof(clover_gated_delta_net_gating_args, g), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "HV"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"beta", "[T, HV]", offsetof(clover_gated_delta_net_gating_args, beta), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "HV"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
};
}  // namespace gated_delta_net_gating

namespace gated_delta_rule {
const char* const symbols[] = {"T", "H", "K", "HV", "V", "S", "N"};
const TensorSpec tensors[] = {
    {"q", "[T, H, K]", offsetof(clover_gated_delta_rule_args, q), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {1, 1, 0, "H"}, {2, 1, 0, "K"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"k", "[T, H, K]", offsetof(clover_gated_delta_rule_args, k), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {1, 1, 0, "H"}, {2, 1, 0, "K"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"v", "[T, HV, V]", offsetof(clover_gated_delta_rule_args, v), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {3, 1, 0, "HV"}, {4, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"g", "[T, HV]", offsetof(clover_gated_delta_rule_args, g), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {3, 1, 0, "HV"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"beta", "[T, HV]", offsetof(clover_gated_delta_rule_args, beta), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {3, 1, 0, "HV"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"state", "[S, HV, V, K]", offsetof(clover_gated_delta_rule_args, state), Role::kInOut, Strides::kMatrix, Values::kNone, false, 4,
     {{5, 1, 0, "S"}, {3, 1, 0, "HV"}, {4, 1, 0, "V"}, {2, 1, 0, "K"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"cu_seqlens", "[N+1]", offsetof(clover_gated_delta_rule_args, cu_seqlens), Role::kIn, Strides::kLast, Values::kCuSeqlens, false, 1,
     {{6, 1, 1, "N+1"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"initial_state_indices", "[N]", offsetof(clover_gated_delta_rule_args, initial_state_indices), Role::kIn, Strides::kLast, Values::kInitialSlots, false, 1,
     {{6, 1, 0, "N"}}, {"int32", -1, kBitInt32}, {5, -1}},
    {"final_state_indices", "[N]", offsetof(clover_gated_delta_rule_args, final_state_indices), Role::kIn, Strides::kLast, Values::kFinalSlots, false, 1,
     {{6, 1, 0, "N"}}, {"int32", -1, kBitInt32}, {5, -1}},
    {"o", "[T, HV, V]", offsetof(clover_gated_delta_rule_args, o), Role::kOut, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {3, 1, 0, "HV"}, {4, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
const AttributeSpec attributes[] = {
    {"scale", offsetof(clover_gated_delta_rule_args, scale), AttributeType::kFloat, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t* d) -> double { return static_cast<double>(std::pow(double(d[2]), double(-0.5))); }},
    {"l2norm", offsetof(clover_gated_delta_rule_args, l2norm), AttributeType::kBool, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t*) -> double { return 0; }},
    {"max_seqlen", offsetof(clover_gated_delta_rule_args, max_seqlen), AttributeType::kInt, false, -1, 0, kInfinity, false,
     nullptr, 0, [](const int64_t* d) -> double { return static_cast<double>(d[0]); }},
};
const int16_t rule0_symbols[] = {2};
const int16_t rule1_symbols[] = {4};
const int16_t rule2_symbols[] = {1};
const int16_t rule3_symbols[] = {3, 1};
const RuleSpec rules[] = {
    {"K >= 1", [](const int64_t* d) -> bool { return d[2] >= 1; }, rule0_symbols, 1},
    {"V >= 1", [](const int64_t* d) -> bool { return d[4] >= 1; }, rule1_symbols, 1},
    {"H >= 1", [](const int64_t* d) -> bool { return d[1] >= 1; }, rule2_symbols, 1},
    {"HV % H == 0", [](const int64_t* d) -> bool { return sat::mod(d[3], d[1]) == 0; }, rule3_symbols, 2},
};
}  // namespace gated_delta_rule

namespace preview_gated_delta_rule {
const char* const symbols[] = {"T", "H", "K", "HV", "V", "S", "N"};
const TensorSpec tensors[] = {
    {"q", "[T, H, K]", offsetof(clover_preview_gated_delta_rule_args, q), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {1, 1, 0, "H"}, {2, 1, 0, "K"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"k", "[T, H, K]", offsetof(clover_preview_gated_delta_rule_args, k), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {1, 1, 0, "H"}, {2, 1, 0, "K"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"v", "[T, HV, V]", offsetof(clover_preview_gated_delta_rule_args, v), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {3, 1, 0, "HV"}, {4, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"g", "[T, HV]", offsetof(clover_preview_gated_delta_rule_args, g), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {3, 1, 0, "HV"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"beta", "[T, HV]", offsetof(clover_preview_gated_delta_rule_args, beta), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {3, 1, 0, "HV"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"state", "[S, HV, V, K]", offsetof(clover_preview_gated_delta_rule_args, state), Role::kIn, Strides::kMatrix, Values::kNone, false, 4,
     {{5, 1, 0, "S"}, {3, 1, 0, "HV"}, {4, 1, 0, "V"}, {2, 1, 0, "K"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"cu_seqlens", "[N+1]", offsetof(clover_preview_gated_delta_rule_args, cu_seqlens), Role::kIn, Strides::kLast, Values::kCuSeqlens, false, 1,
     {{6, 1, 1, "N+1"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"initial_state_indices", "[N]", offsetof(clover_preview_gated_delta_rule_args, initial_state_indices), Role::kIn, Strides::kLast, Values::kInitialSlots, false, 1,
     {{6, 1, 0, "N"}}, {"int32", -1, kBitInt32}, {5, -1}},
    {"o", "[T, HV, V]", offsetof(clover_preview_gated_delta_rule_args, o), Role::kOut, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {3, 1, 0, "HV"}, {4, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
const char* const read_choices[] = {"bidirectional", "block", "causal"};
const AttributeSpec attributes[] = {
    {"scale", offsetof(clover_preview_gated_delta_rule_args, scale), AttributeType::kFloat, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t* d) -> double { return static_cast<double>(std::pow(double(d[2]), double(-0.5))); }},
    {"l2norm", offsetof(clover_preview_gated_delta_rule_args, l2norm), AttributeType::kBool, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t*) -> double { return 0; }},
    {"read", offsetof(clover_preview_gated_delta_rule_args, read), AttributeType::kEnum, false, -1, -kInfinity, kInfinity, false,
     read_choices, 3, [](const int64_t*) -> double { return 0; }},
    {"max_seqlen", offsetof(clover_preview_gated_delta_rule_args, max_seqlen), AttributeType::kInt, false, -1, 0, kInfinity, false,
     nullptr, 0, [](const int64_t* d) -> double { return static_cast<double>(d[0]); }},
};
const int16_t rule0_symbols[] = {2};
const int16_t rule1_symbols[] = {4};
const int16_t rule2_symbols[] = {1};
const int16_t rule3_symbols[] = {3, 1};
const RuleSpec rules[] = {
    {"K >= 1", [](const int64_t* d) -> bool { return d[2] >= 1; }, rule0_symbols, 1},
    {"V >= 1", [](const int64_t* d) -> bool { return d[4] >= 1; }, rule1_symbols, 1},
    {"H >= 1", [](const int64_t* d) -> bool { return d[1] >= 1; }, rule2_symbols, 1},
    {"HV % H == 0", [](const int64_t* d) -> bool { return sat::mod(d[3], d[1]) == 0; }, rule3_symbols, 2},
};
}  // namespace preview_gated_delta_rule

namespace preview_gdn {
const char* const symbols[] = {"T", "C", "HV", "V", "KC", "SC", "S", "K", "N", "H"};
const TensorSpec tensors[] = {
    {"qkv", "[T, C]", offsetof(clover_preview_gdn_args, qkv), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "C"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"a", "[T, HV]", offsetof(clover_preview_gdn_args, a), Role::kIn, Strides::kAny, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {2, 1, 0, "HV"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"b", "[T, HV]", offsetof(clover_preview_gdn_args, b), Role::kIn, Strides::kAny, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {2, 1, 0, "HV"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"z", "[T, HV, V]", offsetof(clover_preview_gdn_args, z), Role::kIn, Strides::kLast, Values::kNone, true, 3,
     {{0, 1, 0, "T"}, {2, 1, 0, "HV"}, {3, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"conv_weight", "[C, KC]", offsetof(clover_preview_gdn_args, conv_weight), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{1, 1, 0, "C"}, {4, 1, 0, "KC"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"conv_bias", "[C]", offsetof(clover_preview_gdn_args, conv_bias), Role::kIn, Strides::kLast, Values::kNone, true, 1,
     {{1, 1, 0, "C"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"conv_state", "[SC, C, KC-1]", offsetof(clover_preview_gdn_args, conv_state), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{5, 1, 0, "SC"}, {1, 1, 0, "C"}, {4, 1, -1, "KC-1"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"A_log", "[HV]", offsetof(clover_preview_gdn_args, A_log), Role::kIn, Strides::kLast, Values::kNone, false, 1,
     {{2, 1, 0, "HV"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"dt_bias", "[HV]", offsetof(clover_preview_gdn_args, dt_bias), Role::kIn, Strides::kLast, Values::kNone, false, 1,
     {{2, 1, 0, "HV"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"state", "[S, HV, V, K]", offsetof(clover_preview_gdn_args, state), Role::kIn, Strides::kMatrix, Values::kNone, false, 4,
     {{6, 1, 0, "S"}, {2, 1, 0, "HV"}, {3, 1, 0, "V"}, {7, 1, 0, "K"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"cu_seqlens", "[N+1]", offsetof(clover_preview_gdn_args, cu_seqlens), Role::kIn, Strides::kLast, Values::kCuSeqlens, false, 1,
     {{8, 1, 1, "N+1"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"initial_state_indices", "[N]", offsetof(clover_preview_gdn_args, initial_state_indices), Role::kIn, Strides::kLast, Values::kInitialSlots, false, 1,
     {{8, 1, 0, "N"}}, {"int32", -1, kBitInt32}, {5, 6}},
    {"norm_weight", "[V]", offsetof(clover_preview_gdn_args, norm_weight), Role::kIn, Strides::kLast, Values::kNone, true, 1,
     {{3, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"o", "[T, HV, V]", offsetof(clover_preview_gdn_args, o), Role::kOut, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {2, 1, 0, "HV"}, {3, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
const char* const read_choices[] = {"bidirectional", "block", "causal"};
const AttributeSpec attributes[] = {
    {"eps", offsetof(clover_preview_gdn_args, eps), AttributeType::kFloat, false, -1, 0, kInfinity, false,
     nullptr, 0, [](const int64_t* ) -> double { return static_cast<double>(1e-06); }},
    {"scale", offsetof(clover_preview_gdn_args, scale), AttributeType::kFloat, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t* d) -> double { return static_cast<double>(std::pow(double(d[7]), double(-0.5))); }},
    {"read", offsetof(clover_preview_gdn_args, read), AttributeType::kEnum, false, -1, -kInfinity, kInfinity, false,
     read_choices, 3, [](const int64_t*) -> double { return 0; }},
    {"max_seqlen", offsetof(clover_preview_gdn_args, max_seqlen), AttributeType::kInt, false, -1, 0, kInfinity, false,
     nullptr, 0, [](const int64_t* d) -> double { return static_cast<double>(d[0]); }},
};
const DerivedSpec derived[] = {
    {9, "(C - HV * V) // (2 * K)", [](const int64_t* d) -> int64_t { return sat::div(sat::sub(d[1], sat::mul(d[2], d[3])), sat::mul(2, d[7])); }},
};
const int16_t rule0_symbols[] = {4};
const int16_t rule1_symbols[] = {7};
const int16_t rule2_symbols[] = {3};
const int16_t rule3_symbols[] = {1, 9, 7, 2, 3};
const int16_t rule4_symbols[] = {9};
const int16_t rule5_symbols[] = {2, 9};
const RuleSpec rules[] = {
    {"KC >= 1", [](const int64_t* d) -> bool { return d[4] >= 1; }, rule0_symbols, 1},
    {"K >= 1", [](const int64_t* d) -> bool { return d[7] >= 1; }, rule1_symbols, 1},
    {"V >= 1", [](const int64_t* d) -> bool { return d[3] >= 1; }, rule2_symbols, 1},
    {"C == 2 * H * K + HV * V", [](const int64_t* d) -> bool { return d[1] == sat::add(sat::mul(sat::mul(2, d[9]), d[7]), sat::mul(d[2], d[3])); }, rule3_symbols, 5},
    {"H >= 1", [](const int64_t* d) -> bool { return d[9] >= 1; }, rule4_symbols, 1},
    {"HV % H == 0", [](const int64_t* d) -> bool { return sat::mod(d[2], d[9]) == 0; }, rule5_symbols, 2},
};
const NeedSpec needs[] = {
    {3, 12},
    {12, 3},
};
}  // namespace preview_gdn

namespace topk_softmax {
const char* const symbols[] = {"T", "E", "k"};
const TensorSpec tensors[] = {
    {"logits", "[T, E]", offsetof(clover_topk_softmax_args, logits), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "E"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"ids", "[T, k]", offsetof(clover_topk_softmax_args, ids), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {2, 1, 0, "k"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"weights", "[T, k]", offsetof(clover_topk_softmax_args, weights), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {2, 1, 0, "k"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
};
const AttributeSpec attributes[] = {
    {"k", offsetof(clover_topk_softmax_args, k), AttributeType::kInt, true, 2, 1, kInfinity, false,
     nullptr, 0, nullptr},
    {"renormalize", offsetof(clover_topk_softmax_args, renormalize), AttributeType::kBool, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t*) -> double { return 0; }},
};
const int16_t rule0_symbols[] = {2, 1};
const RuleSpec rules[] = {
    {"k <= E", [](const int64_t* d) -> bool { return d[2] <= d[1]; }, rule0_symbols, 2},
};
}  // namespace topk_softmax

namespace block_coreset {
const char* const symbols[] = {"T", "E", "N", "k", "budget"};
const TensorSpec tensors[] = {
    {"logits", "[T, E]", offsetof(clover_block_coreset_args, logits), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "E"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"cu_seqlens", "[N+1]", offsetof(clover_block_coreset_args, cu_seqlens), Role::kIn, Strides::kLast, Values::kCuSeqlens, false, 1,
     {{2, 1, 1, "N+1"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"live", "[T]", offsetof(clover_block_coreset_args, live), Role::kIn, Strides::kLast, Values::kNone, true, 1,
     {{0, 1, 0, "T"}}, {"bool", -1, kBitBool}, {-1, -1}},
    {"coreset", "[N, E]", offsetof(clover_block_coreset_args, coreset), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{2, 1, 0, "N"}, {1, 1, 0, "E"}}, {"bool", -1, kBitBool}, {-1, -1}},
    {"ids", "[T, k]", offsetof(clover_block_coreset_args, ids), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {3, 1, 0, "k"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"weights", "[T, k]", offsetof(clover_block_coreset_args, weights), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {3, 1, 0, "k"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
};
const char* const mode_choices[] = {"vote", "max"};
const AttributeSpec attributes[] = {
    {"k", offsetof(clover_block_coreset_args, k), AttributeType::kInt, true, 3, 1, kInfinity, false,
     nullptr, 0, nullptr},
    {"budget", offsetof(clover_block_coreset_args, budget), AttributeType::kInt, true, 4, 1, kInfinity, false,
     nullptr, 0, nullptr},
    {"mode", offsetof(clover_block_coreset_args, mode), AttributeType::kEnum, false, -1, -kInfinity, kInfinity, false,
     mode_choices, 2, [](const int64_t*) -> double { return 0; }},
    {"top_p", offsetof(clover_block_coreset_args, top_p), AttributeType::kFloat, false, -1, 0, 1, true,
     nullptr, 0, nullptr},
    {"renormalize", offsetof(clover_block_coreset_args, renormalize), AttributeType::kBool, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t*) -> double { return 0; }},
};
const int16_t rule0_symbols[] = {3, 4};
const int16_t rule1_symbols[] = {4, 1};
const RuleSpec rules[] = {
    {"k <= budget", [](const int64_t* d) -> bool { return d[3] <= d[4]; }, rule0_symbols, 2},
    {"budget <= E", [](const int64_t* d) -> bool { return d[4] <= d[1]; }, rule1_symbols, 2},
};
}  // namespace block_coreset

namespace live_row_routes {
const char* const symbols[] = {"T", "k"};
const TensorSpec tensors[] = {
    {"ids", "[T, k]", offsetof(clover_live_row_routes_args, ids), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "k"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"weights", "[T, k]", offsetof(clover_live_row_routes_args, weights), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "k"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"live", "[T]", offsetof(clover_live_row_routes_args, live), Role::kIn, Strides::kLast, Values::kNone, false, 1,
     {{0, 1, 0, "T"}}, {"bool", -1, kBitBool}, {-1, -1}},
    {"live_ids", "[T, k]", offsetof(clover_live_row_routes_args, live_ids), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "k"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"live_weights", "[T, k]", offsetof(clover_live_row_routes_args, live_weights), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "k"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"rows", "[T]", offsetof(clover_live_row_routes_args, rows), Role::kOut, Strides::kLast, Values::kNone, false, 1,
     {{0, 1, 0, "T"}}, {"int32", -1, kBitInt32}, {-1, -1}},
    {"count", "[1]", offsetof(clover_live_row_routes_args, count), Role::kOut, Strides::kLast, Values::kNone, false, 1,
     {{-1, 0, 1, "1"}}, {"int32", -1, kBitInt32}, {-1, -1}},
};
}  // namespace live_row_routes

namespace merge_live_rows {
const char* const symbols[] = {"T", "D"};
const TensorSpec tensors[] = {
    {"fresh", "[T, D]", offsetof(clover_merge_live_rows_args, fresh), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "D"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"cache", "[T, D]", offsetof(clover_merge_live_rows_args, cache), Role::kInOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "D"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"live", "[T]", offsetof(clover_merge_live_rows_args, live), Role::kIn, Strides::kLast, Values::kNone, false, 1,
     {{0, 1, 0, "T"}}, {"bool", -1, kBitBool}, {-1, -1}},
    {"out", "[T, D]", offsetof(clover_merge_live_rows_args, out), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "D"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
}  // namespace merge_live_rows

namespace fused_moe {
const char* const symbols[] = {"T", "D", "E", "I", "k", "Is"};
const TensorSpec tensors[] = {
    {"x", "[T, D]", offsetof(clover_fused_moe_args, x), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "D"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"w13", "[E, 2*I, D]", offsetof(clover_fused_moe_args, w13), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{2, 1, 0, "E"}, {3, 2, 0, "2*I"}, {1, 1, 0, "D"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"w2", "[E, D, I]", offsetof(clover_fused_moe_args, w2), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{2, 1, 0, "E"}, {1, 1, 0, "D"}, {3, 1, 0, "I"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"ids", "[T, k]", offsetof(clover_fused_moe_args, ids), Role::kIn, Strides::kLast, Values::kExperts, false, 2,
     {{0, 1, 0, "T"}, {4, 1, 0, "k"}}, {"int32", -1, kBitInt32}, {2, -1}},
    {"weights", "[T, k]", offsetof(clover_fused_moe_args, weights), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {4, 1, 0, "k"}}, {"float32", -1, kBitFloat32}, {-1, -1}},
    {"shared_w13", "[2*Is, D]", offsetof(clover_fused_moe_args, shared_w13), Role::kIn, Strides::kLast, Values::kNone, true, 2,
     {{5, 2, 0, "2*Is"}, {1, 1, 0, "D"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"shared_w2", "[D, Is]", offsetof(clover_fused_moe_args, shared_w2), Role::kIn, Strides::kLast, Values::kNone, true, 2,
     {{1, 1, 0, "D"}, {5, 1, 0, "Is"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"shared_gate", "[D]", offsetof(clover_fused_moe_args, shared_gate), Role::kIn, Strides::kLast, Values::kNone, true, 1,
     {{1, 1, 0, "D"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"y", "[T, D]", offsetof(clover_fused_moe_args, y), Role::kOut, Strides::kLast, Values::kNone, false, 2,
     {{0, 1, 0, "T"}, {1, 1, 0, "D"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
const char* const weight_layout_choices[] = {"dense"};
const AttributeSpec attributes[] = {
    {"routed_scale", offsetof(clover_fused_moe_args, routed_scale), AttributeType::kFloat, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t* ) -> double { return static_cast<double>(1.0); }},
    {"weight_layout", offsetof(clover_fused_moe_args, weight_layout), AttributeType::kEnum, false, -1, -kInfinity, kInfinity, false,
     weight_layout_choices, 1, [](const int64_t*) -> double { return 0; }},
};
const NeedSpec needs[] = {
    {5, 6},
    {6, 5},
    {7, 5},
};
}  // namespace fused_moe

namespace rotary_embedding {
const char* const symbols[] = {"T", "A", "AD", "AKV", "P", "RD"};
const TensorSpec tensors[] = {
    {"positions", "[T]", offsetof(clover_rotary_embedding_args, positions), Role::kIn, Strides::kLast, Values::kPositions, false, 1,
     {{0, 1, 0, "T"}}, {"int32", -1, kBitInt32}, {4, -1}},
    {"q", "[T, A, AD]", offsetof(clover_rotary_embedding_args, q), Role::kInOut, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {1, 1, 0, "A"}, {2, 1, 0, "AD"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"k", "[T, AKV, AD]", offsetof(clover_rotary_embedding_args, k), Role::kInOut, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {3, 1, 0, "AKV"}, {2, 1, 0, "AD"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"cos_sin", "[P, RD]", offsetof(clover_rotary_embedding_args, cos_sin), Role::kIn, Strides::kLast, Values::kNone, false, 2,
     {{4, 1, 0, "P"}, {5, 1, 0, "RD"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
const AttributeSpec attributes[] = {
    {"interleaved", offsetof(clover_rotary_embedding_args, interleaved), AttributeType::kBool, false, -1, -kInfinity, kInfinity, false,
     nullptr, 0, [](const int64_t*) -> double { return 0; }},
};
const int16_t rule0_symbols[] = {5};
const int16_t rule1_symbols[] = {5, 2};
const RuleSpec rules[] = {
    {"RD % 2 == 0", [](const int64_t* d) -> bool { return sat::mod(d[5], 2) == 0; }, rule0_symbols, 1},
    {"RD <= AD", [](const int64_t* d) -> bool { return d[5] <= d[2]; }, rule1_symbols, 2},
};
}  // namespace rotary_embedding

namespace rearrange {
const TensorSpec tensors[] = {
    {"src", "[...]", offsetof(clover_rearrange_args, src), Role::kIn, Strides::kAny, Values::kNone, false, -1,
     {}, {"element", 2, kBitElement}, {-1, -1}},
    {"dst", "[...]", offsetof(clover_rearrange_args, dst), Role::kOut, Strides::kAny, Values::kNone, false, -1,
     {}, {"element", 2, kBitElement}, {-1, -1}},
};
}  // namespace rearrange

namespace cast {
const TensorSpec tensors[] = {
    {"src", "[...]", offsetof(clover_cast_args, src), Role::kIn, Strides::kAny, Values::kNone, false, -1,
     {}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"dst", "[...]", offsetof(clover_cast_args, dst), Role::kOut, Strides::kAny, Values::kNone, false, -1,
     {}, {"Y", 1, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
}  // namespace cast

namespace rms_norm_gated {
const char* const symbols[] = {"T", "HV", "V"};
const TensorSpec tensors[] = {
    {"x", "[T, HV, V]", offsetof(clover_rms_norm_gated_args, x), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {1, 1, 0, "HV"}, {2, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"weight", "[V]", offsetof(clover_rms_norm_gated_args, weight), Role::kIn, Strides::kLast, Values::kNone, false, 1,
     {{2, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"z", "[T, HV, V]", offsetof(clover_rms_norm_gated_args, z), Role::kIn, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {1, 1, 0, "HV"}, {2, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
    {"y", "[T, HV, V]", offsetof(clover_rms_norm_gated_args, y), Role::kOut, Strides::kLast, Values::kNone, false, 3,
     {{0, 1, 0, "T"}, {1, 1, 0, "HV"}, {2, 1, 0, "V"}}, {"X", 0, kBitBFloat16 | kBitFloat16 | kBitFloat32}, {-1, -1}},
};
const AttributeSpec attributes[] = {
    {"eps", offsetof(clover_rms_norm_gated_args, eps), AttributeType::kFloat, false, -1, 0, kInfinity, false,
     nullptr, 0, [](const int64_t* ) -> double { return static_cast<double>(1e-06); }},
};
}  // namespace rms_norm_gated

const OperatorSpec kOperators[] = {
    {1, "causal_conv1d", "causal_conv1d(x, weight, bias\?, conv_state, cu_seqlens, initial_state_indices, final_state_indices, activation, max_seqlen) -> y", sizeof(clover_causal_conv1d_args), false,
     {causal_conv1d::tensors, 8}, {causal_conv1d::attributes, 2}, {causal_conv1d::symbols, 5}, {nullptr, 0}, {causal_conv1d::rules, 1}, {nullptr, 0}},
    {2, "preview_conv1d", "preview_conv1d(x, weight, bias\?, conv_state, cu_seqlens, initial_state_indices, activation, max_seqlen) -> y", sizeof(clover_preview_conv1d_args), false,
     {preview_conv1d::tensors, 7}, {preview_conv1d::attributes, 2}, {preview_conv1d::symbols, 5}, {nullptr, 0}, {preview_conv1d::rules, 1}, {nullptr, 0}},
    {3, "gated_delta_net_gating", "gated_delta_net_gating(a, b, A_log, dt_bias) -> g, beta", sizeof(clover_gated_delta_net_gating_args), false,
     {gated_delta_net_gating::tensors, 6}, {nullptr, 0}, {gated_delta_net_gating::symbols, 2}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}},
    {4, "gated_delta_rule", "gated_delta_rule(q, k, v, g, beta, state, cu_seqlens, initial_state_indices, final_state_indices, scale, l2norm, max_seqlen) -> o", sizeof(clover_gated_delta_rule_args), true,
     {gated_delta_rule::tensors, 10}, {gated_delta_rule::attributes, 3}, {gated_delta_rule::symbols, 7}, {nullptr, 0}, {gated_delta_rule::rules, 4}, {nullptr, 0}},
    {5, "preview_gated_delta_rule", "preview_gated_delta_rule(q, k, v, g, beta, state, cu_seqlens, initial_state_indices, scale, l2norm, read, max_seqlen) -> o", sizeof(clover_preview_gated_delta_rule_args), true,
     {preview_gated_delta_rule::tensors, 9}, {preview_gated_delta_rule::attributes, 4}, {preview_gated_delta_rule::symbols, 7}, {nullptr, 0}, {preview_gated_delta_rule::rules, 4}, {nullptr, 0}},
    {6, "preview_gdn", "preview_gdn(qkv, a, b, z\?, conv_weight, conv_bias\?, conv_state, A_log, dt_bias, state, cu_seqlens, initial_state_indices, norm_weight\?, eps, scale, read, max_seqlen) -> o", sizeof(clover_preview_gdn_args), true,
     {preview_gdn::tensors, 14}, {preview_gdn::attributes, 4}, {preview_gdn::symbols, 10}, {preview_gdn::derived, 1}, {preview_gdn::rules, 6}, {preview_gdn::needs, 2}},
    {7, "topk_softmax", "topk_softmax(logits, k, renormalize) -> ids, weights", sizeof(clover_topk_softmax_args), false,
     {topk_softmax::tensors, 3}, {topk_softmax::attributes, 2}, {topk_softmax::symbols, 3}, {nullptr, 0}, {topk_softmax::rules, 1}, {nullptr, 0}},
    {8, "block_coreset", "block_coreset(logits, cu_seqlens, live\?, k, budget, mode, top_p, renormalize) -> coreset, ids, weights", sizeof(clover_block_coreset_args), true,
     {block_coreset::tensors, 6}, {block_coreset::attributes, 5}, {block_coreset::symbols, 5}, {nullptr, 0}, {block_coreset::rules, 2}, {nullptr, 0}},
    {9, "live_row_routes", "live_row_routes(ids, weights, live) -> live_ids, live_weights, rows, count", sizeof(clover_live_row_routes_args), false,
     {live_row_routes::tensors, 7}, {nullptr, 0}, {live_row_routes::symbols, 2}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}},
    {10, "merge_live_rows", "merge_live_rows(fresh, cache, live) -> out", sizeof(clover_merge_live_rows_args), false,
     {merge_live_rows::tensors, 4}, {nullptr, 0}, {merge_live_rows::symbols, 2}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}},
    {11, "fused_moe", "fused_moe(x, w13, w2, ids, weights, shared_w13\?, shared_w2\?, shared_gate\?, routed_scale, weight_layout) -> y", sizeof(clover_fused_moe_args), true,
     {fused_moe::tensors, 9}, {fused_moe::attributes, 2}, {fused_moe::symbols, 6}, {nullptr, 0}, {nullptr, 0}, {fused_moe::needs, 3}},
    {12, "rotary_embedding", "rotary_embedding(positions, q, k, cos_sin, interleaved) -> nothing", sizeof(clover_rotary_embedding_args), false,
     {rotary_embedding::tensors, 4}, {rotary_embedding::attributes, 1}, {rotary_embedding::symbols, 6}, {nullptr, 0}, {rotary_embedding::rules, 2}, {nullptr, 0}},
    {13, "rearrange", "rearrange(src) -> dst", sizeof(clover_rearrange_args), false,
     {rearrange::tensors, 2}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}},
    {14, "cast", "cast(src) -> dst", sizeof(clover_cast_args), false,
     {cast::tensors, 2}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}},
    {15, "rms_norm_gated", "rms_norm_gated(x, weight, z, eps) -> y", sizeof(clover_rms_norm_gated_args), false,
     {rms_norm_gated::tensors, 4}, {rms_norm_gated::attributes, 1}, {rms_norm_gated::symbols, 3}, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}},
};

}  // namespace

Span<OperatorSpec> all_operators() { return {kOperators, 15}; }

const OperatorSpec* find_operator(uint32_t number) {
  for (const OperatorSpec& op : all_operators())
    if (op.number == number) return &op;
  return nullptr;
}

}  // namespace clover
