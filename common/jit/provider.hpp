// A provider from a plan of Triton launches: CLOVER_TRITON_PROVIDER(gated_delta_rule, GatedDeltaRule) after
//
//   struct GatedDeltaRule {
//     // Fills `plan`, or returns why it does not take the call. No launches: there is nothing to do.
//     static const char* plan(Triton& triton, const clover_gated_delta_rule_args&, const clover_gated_delta_rule_dims&,
//                             Plan* plan);
//   };
#pragma once

#include <clover/provider.hpp>

#include "common/device/view.hpp"
#include "triton.hpp"

namespace clover::jit {

// The launches of a call and the workspace that they share.
class Plan {
 public:
  static constexpr int kMaxLaunches = 8;

  explicit Plan(void* workspace = nullptr) : workspace_(static_cast<char*>(workspace)) {}

  Launch& add(const char* kernel, const char* data) {
    Launch& launch = launches_[count_++];
    launch.start(kernel, data);
    return launch;
  }

  // Memory in the workspace, aligned as Triton assumes. Before there is a workspace the address is its offset.
  template <class T>
  T* reserve(int64_t elements) {
    char* at = workspace_ + bytes_;
    bytes_ += (static_cast<uint64_t>(elements) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<T*>(at);
  }

  // Scratch memory that kernels.toml declares; called once all grids are known.
  void reserve_scratch() {
    for (int i = 0; i < count_; ++i)
      if (const int64_t each = launches_[i].row().scratch_bytes; each > 0)
        launches_[i].scratch = reserve<char>(each * static_cast<int64_t>(launches_[i].programs()));
  }

  const Launch* launches() const { return launches_; }
  int count() const { return count_; }
  uint64_t workspace_bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kAlignment = 128;

  Launch launches_[kMaxLaunches];
  int count_ = 0;
  char* workspace_;
  uint64_t bytes_ = 0;
};

// What `*x` points to.
inline const char* data_name(const clover_tensor* tensor) {
  if (tensor->dtype.code == CLOVER_BFLOAT) return "bf16";
  return tensor->dtype.bits == 16 ? "fp16" : "fp32";
}

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// tl.arange and tl.dot take powers of two, the latter from 16 on.
inline int64_t power_of_two(int64_t value, int64_t least = 16) {
  int64_t power = least;
  while (power < value) power *= 2;
  return power;
}

template <class Operator, class Args, class Dims>
class TritonProvider {
 public:
  static int32_t accept(const clover_call& call, const Args& args, const Dims& dims) {
    const int32_t status = device::guarded(call.message, call.message_capacity, [&] {
      Plan plan;
      make_plan(of(call), args, dims, &plan);
    });
    return status == CLOVER_OK ? 1 : 0;
  }

  static uint64_t workspace_bytes(const clover_call& call, const Args& args, const Dims& dims) {
    uint64_t bytes = 0;
    device::guarded(nullptr, 0, [&] {
      Plan plan;
      Operator::plan(of(call), args, dims, &plan);
      plan.reserve_scratch();
      bytes = plan.workspace_bytes();
    });
    return bytes;
  }

  static int32_t prepare(const clover_call& call, const Args& args, const Dims& dims) {
    return device::guarded(call.message, call.message_capacity, [&] {
      Plan plan;
      Triton& triton = of(call);
      make_plan(triton, args, dims, &plan);
      for (int i = 0; i < plan.count(); ++i) triton.prepare(plan.launches()[i], call.stream);
    });
  }

  static int32_t run(const clover_call& call, const Args& args, const Dims& dims) {
    return device::guarded(call.message, call.message_capacity, [&] {
      Plan plan(call.workspace);
      Triton& triton = of(call);
      if (const char* why = Operator::plan(triton, args, dims, &plan)) throw device::Failure(CLOVER_UNSUPPORTED, why);
      plan.reserve_scratch();
      triton.run(plan.launches(), plan.count(), call.stream);
    });
  }

 private:
  static Triton& of(const clover_call& call) { return Triton::of(device::device(call.device_id)); }

  // Throws CLOVER_UNSUPPORTED where the call is not taken.
  static void make_plan(Triton& triton, const Args& args, const Dims& dims, Plan* plan) {
    const auto refuse = [](const std::string& why) { throw device::Failure(CLOVER_UNSUPPORTED, why); };
    if (const char* why = Operator::plan(triton, args, dims, plan)) refuse(why);
    for (int i = 0; i < plan->count(); ++i) {
      if (const std::string why = triton.why_not(plan->launches()[i]); !why.empty()) refuse(why);
      if (const std::string why = grid_fault(triton, plan->launches()[i]); !why.empty()) refuse(why);
    }
  }

  static std::string grid_fault(const Triton& triton, const Launch& launch) {
    for (int axis = 0; axis < 3; ++axis)
      if (launch.grid[axis] > static_cast<uint32_t>(triton.device().limits().grid[axis]))
        return "kernel " + launch.row().name + " would need " + std::to_string(launch.grid[axis]) +
               " programs on axis " + std::to_string(axis) + " of its grid; the device takes up to " +
               std::to_string(triton.device().limits().grid[axis]);
    return "";
  }
};

}  // namespace clover::jit

// At namespace scope outside any namespace; `Operator` may be qualified.
#define CLOVER_TRITON_PROVIDER(op_name, Operator)                                                  \
  namespace {                                                                                      \
  using clover_triton_##op_name =                                                                  \
      ::clover::jit::TritonProvider<Operator, clover_##op_name##_args, clover_##op_name##_dims>;   \
  }                                                                                                \
  CLOVER_PREPARED_PROVIDER(op_name, 10, "triton", clover_triton_##op_name::accept,                 \
                           clover_triton_##op_name::workspace_bytes, clover_triton_##op_name::run, \
                           clover_triton_##op_name::prepare)
