// Every operator through the public C++ API on the CPU, in each dtype, against double-precision loops.
#include <set>

#include "check.hpp"
#include "operators/case.hpp"
#include "operators/workspace.hpp"

namespace {

using operators::Case;
using operators::CasePointer;
using operators::DType;
using operators::Workspace;

constexpr DType kTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};

template <class Body>
void for_each_case(Body&& body) {
  for (const DType type : kTypes)
    for (const CasePointer& c : operators::all_cases(type)) {
      const check::Context context(std::string(c->name()) + ", " + operators::dtype_name(type));
      const Workspace workspace(c->workspace_size({}));
      body(*c, workspace.handle());
      CHECK(workspace.guard_intact());
    }
}

}  // namespace

TEST(every_operator_has_a_case) {
  std::set<std::string> cases, operators;
  for (const CasePointer& c : operators::all_cases(DType::kFloat32)) cases.insert(c->name());
#define OPERATOR(name) operators.insert(#name);
#include "operators.inc"
#undef OPERATOR
  CHECK_EQUAL(operators.size(), size_t{15});
  CHECK(cases == operators);
}

TEST(results_agree_with_the_reference) {
  for_each_case([](Case& c, const clover::Handle& handle) {
    c.run(handle);
    c.verify();
    c.check_surroundings();
  });
}

TEST(a_repeated_call_gives_the_same_bits) {
  for_each_case([](Case& c, const clover::Handle& handle) {
    c.run(handle);
    const std::vector<std::string> first = c.results();
    c.restore();
    c.run(handle);
    CHECK(c.results() == first);
  });
}

TEST(the_stream_is_ignored_on_the_cpu) {
  int not_a_stream = 0;
  for_each_case([&](Case& c, clover::Handle handle) {
    handle.stream = &not_a_stream;
    c.run(handle);
    c.verify();
  });
}

TEST(a_provider_is_chosen_by_its_slot) {
  for_each_case([](Case& c, clover::Handle handle) {
    handle.provider_slot = 0;
    c.run(handle);
    c.verify();
    c.restore();
    handle.provider_slot = 7;
    CHECK_THROWS(
        clover::Unsupported, [&] { c.run(handle); }, c.name(), "no provider in slot 7 on cpu",
        "cpu provider 0 (native): another slot was asked for");
    handle.provider_slot = -2;
    CHECK_THROWS(clover::InvalidArgument, [&] { c.run(handle); }, c.name(), "provider slot", "-2");
    CHECK(c.unchanged());
  });
}
