// A provider from a planner: CLOVER_PLANNED_PROVIDER(topk_softmax, 0, "native", TopkSoftmax) after
//
//   struct TopkSoftmax {
//     static constexpr auto plan = plan_topk_softmax;   // (machine, args, launches, max_launches, &why_not) ->
//     launches static TopkSoftmaxArgs read(const clover_topk_softmax_args&, const clover_topk_softmax_dims&);
//     // Where the operator takes a workspace:
//     static uint64_t workspace_bytes(const native::Machine&, const TopkSoftmaxArgs&);
//     static void set_workspace(TopkSoftmaxArgs*, void* workspace, uint64_t bytes);
//   };
//
// A planner that returns 0 refuses when it gives a reason, and has nothing to do when it gives none.
#pragma once

#include <clover/provider.hpp>
#include <type_traits>
#include <utility>

#include "device.hpp"
#include "launcher.hpp"
#include "view.hpp"

namespace clover::device {

template <class Operator, class Args, class Dims>
class PlannedProvider {
  using PlanArgs = decltype(Operator::read(std::declval<const Args&>(), std::declval<const Dims&>()));

  template <class T, class = void>
  struct HasWorkspace : std::false_type {};
  template <class T>
  struct HasWorkspace<T, std::void_t<decltype(&T::workspace_bytes)>> : std::true_type {};

 public:
  static constexpr bool kTakesWorkspace = HasWorkspace<Operator>::value;

  static int32_t accept(const clover_call& call, const Args& args, const Dims& dims) {
    native::Launch launches[kMaxLaunches];
    const char* why_not = nullptr;
    int count = 0;
    const int32_t status = guarded(call.message, call.message_capacity, [&] {
      const native::Machine& machine = device(call.device_id).machine();
      PlanArgs plan = Operator::read(args, dims);
      // There is no workspace yet, only its size.
      if constexpr (kTakesWorkspace) Operator::set_workspace(&plan, nullptr, Operator::workspace_bytes(machine, plan));
      count = Operator::plan(machine, plan, launches, kMaxLaunches, &why_not);
    });
    if (status != CLOVER_OK) return 0;
    return count > 0 || why_not == nullptr ? 1 : refuse(call, 0, "%s", why_not);
  }

  static uint64_t workspace_bytes(const clover_call& call, const Args& args, const Dims& dims) {
    uint64_t bytes = 0;
    if constexpr (kTakesWorkspace)
      guarded(nullptr, 0,
              [&] { bytes = Operator::workspace_bytes(device(call.device_id).machine(), Operator::read(args, dims)); });
    return bytes;
  }

  static int32_t run(const clover_call& call, const Args& args, const Dims& dims) {
    return guarded(call.message, call.message_capacity, [&] {
      Device& on = device(call.device_id);
      PlanArgs plan = Operator::read(args, dims);
      if constexpr (kTakesWorkspace) Operator::set_workspace(&plan, call.workspace, call.workspace_bytes);
      native::Launch launches[kMaxLaunches];
      const char* why_not = nullptr;
      const int count = Operator::plan(on.machine(), plan, launches, kMaxLaunches, &why_not);
      if (count == 0 && why_not != nullptr) throw Failure(CLOVER_UNSUPPORTED, why_not);
      launch(on, call.stream, launches, count);
    });
  }
};

}  // namespace clover::device

// At namespace scope outside any namespace; `Operator` may be qualified.
#define CLOVER_PLANNED_PROVIDER(op_name, slot_number, provider_name, Operator)                           \
  namespace {                                                                                            \
  using clover_planned_##op_name##_##slot_number =                                                       \
      ::clover::device::PlannedProvider<Operator, clover_##op_name##_args, clover_##op_name##_dims>;     \
  }                                                                                                      \
  CLOVER_PROVIDER(op_name, slot_number, provider_name, clover_planned_##op_name##_##slot_number::accept, \
                  clover_planned_##op_name##_##slot_number::workspace_bytes,                             \
                  clover_planned_##op_name##_##slot_number::run)
