// Every operator that takes a workspace, with a right, short, misaligned and missing one, on the CPU.
#include <algorithm>
#include <set>

#include "check.hpp"
#include "operators/case.hpp"
#include "operators/workspace.hpp"

namespace {

using operators::CasePointer;
using operators::DType;
using operators::Workspace;

std::vector<CasePointer> cases_with_workspace() {
  std::vector<CasePointer> cases = operators::all_cases(DType::kFloat32);
  for (CasePointer& c : operators::all_cases(DType::kBFloat16)) cases.push_back(std::move(c));
  cases.erase(std::remove_if(cases.begin(), cases.end(), [](const CasePointer& c) { return !c->takes_workspace(); }),
              cases.end());
  return cases;
}

template <class Body>
void for_each_case(Body&& body) {
  for (const CasePointer& c : cases_with_workspace()) {
    const check::Context context(c->name());
    body(*c);
  }
}

// Refused, with these words, before anything was written.
void check_refused(operators::Case& c, const clover::Handle& handle, const char* why, const std::string& detail) {
  CHECK_THROWS(clover::MissingWorkspace, [&] { c.run(handle); }, c.name(), why, detail);
  CHECK(c.unchanged());
}

}  // namespace

// The list comes from the generated header, so that an operator which gains a workspace is missed here.
TEST(every_operator_with_a_workspace_is_here) {
  std::set<std::string> cases, operators;
  for (const CasePointer& c : cases_with_workspace()) cases.insert(c->name());
#define OPERATOR(name) operators.insert(#name);
#include "workspace_operators.inc"
#undef OPERATOR
  CHECK_EQUAL(operators.size(), size_t{5});
  CHECK(cases == operators);
}

TEST(the_right_workspace_gives_right_results) {
  for_each_case([](operators::Case& c) {
    Workspace workspace(c.workspace_size({}));
    c.run(workspace.handle());
    c.verify();
    c.check_surroundings();
    CHECK(workspace.guard_intact());

    const std::vector<std::string> results = c.results();
    workspace.fill(0xFF);  // NaN in every format: what was in it before must not matter
    c.restore();
    c.run(workspace.handle());
    CHECK(c.results() == results);
    CHECK(workspace.guard_intact());
  });
}

TEST(a_larger_workspace_is_as_good) {
  for_each_case([](operators::Case& c) {
    const uint64_t need = c.workspace_size({});
    const Workspace workspace(need + 4096);
    c.run(workspace.handle());
    c.verify();
    CHECK(workspace.guard_intact());
  });
}

TEST(a_missing_workspace_is_refused) {
  for_each_case([](operators::Case& c) {
    const uint64_t need = c.workspace_size({});
    CHECK(need > 0);
    check_refused(c, {}, "workspace is missing", std::to_string(need) + " bytes");
    clover::Handle no_pointer;
    no_pointer.workspace_bytes = need;
    check_refused(c, no_pointer, "workspace is missing", std::string("clover_") + c.name() + "_workspace_size");
  });
}

TEST(a_short_workspace_is_refused) {
  for_each_case([](operators::Case& c) {
    const uint64_t need = c.workspace_size({});
    const Workspace workspace(need);
    for (const uint64_t bytes : {need - 1, need / 2, uint64_t{0}}) {
      clover::Handle handle = workspace.handle();
      handle.workspace_bytes = bytes;
      check_refused(c, handle,
                    "workspace is too small: ", std::to_string(bytes) + " bytes, it needs " + std::to_string(need));
    }
    CHECK(workspace.untouched());
  });
}

TEST(a_misaligned_workspace_is_refused) {
  for_each_case([](operators::Case& c) {
    const uint64_t need = c.workspace_size({});
    const Workspace workspace(need + CLOVER_WORKSPACE_ALIGNMENT);
    for (const int offset : {1, 64, 128, 255}) {
      clover::Handle handle = workspace.handle();
      handle.workspace = static_cast<char*>(handle.workspace) + offset;
      check_refused(c, handle, "workspace is misaligned", "256");
    }
    CHECK(workspace.untouched());
  });
}

TEST(its_size_depends_on_shapes_alone) {
  for_each_case([](operators::Case& c) {
    const uint64_t need = c.workspace_size({});
    c.change_index_values();
    CHECK_EQUAL(c.workspace_size({}), need);
    c.hide_data(true);
    CHECK_EQUAL(c.workspace_size({}), need);
  });
}

TEST(its_size_is_that_of_the_slot_that_was_asked_for) {
  for_each_case([](operators::Case& c) {
    clover::Handle handle;
    handle.provider_slot = 0;
    CHECK_EQUAL(c.workspace_size(handle), c.workspace_size({}));
    handle.provider_slot = 7;
    CHECK_THROWS(clover::Unsupported, [&] { c.workspace_size(handle); }, c.name(), "no provider in slot 7");
  });
}
