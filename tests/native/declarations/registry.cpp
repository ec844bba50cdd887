// A downstream registry that names every operator, compiled for the toy backend, which provides one of them.
#include <clover/ops.h>

#include <iterator>

#include "check.hpp"
#include "json_reader.hpp"
#include "operators/case.hpp"
#include "operators/workspace.hpp"
#include "plugin_files.hpp"

namespace {

using operators::DType;

struct Entry {
  const char* name;
  clover::Op op;
  void (*function)();
};

const Entry kRegistry[] = {
#define OPERATOR(name) {#name, static_cast<clover::Op>(CLOVER_OP_##name), reinterpret_cast<void (*)()>(&clover::name)},
#include "operators.inc"
#undef OPERATOR
};

constexpr clover::Device kToy{TOY_DEVICE, 0};

std::string toy_runs() {
  return json::parse(clover::describe())["plugins"].with("name", "toy")["details"]["runs"].text;
}

bool provided(const char* name) {
  return std::string(name) == "rearrange";
}

}  // namespace

// Comes first: the process looks for plugins once.
TEST(prepare) {
  plugin_files::set_variable("CLOVER_OPS_PLUGIN_PATH", TOY_FOLDER);
  if (TOY_DEVICE == CLOVER_CPU) plugin_files::set_variable("CLOVER_OPS_BACKENDS", "toy");
  CHECK_EQUAL(toy_runs(), std::string("0"));
}

TEST(every_operator_can_be_asked_for) {
  CHECK_EQUAL(std::size(kRegistry), size_t{15});
  for (const Entry& entry : kRegistry) {
    const check::Context context(entry.name);
    CHECK(entry.function != nullptr);
    CHECK_EQUAL(clover::supports(entry.op, kToy), provided(entry.name));
    CHECK_EQUAL(clover::provides(entry.op, "toy"), provided(entry.name));
    CHECK(clover::provides(entry.op, "cpu"));
  }
}

TEST(what_the_backend_provides_runs) {
  for (const operators::CasePointer& c : operators::all_cases(DType::kFloat32, kToy)) {
    if (!provided(c->name())) continue;
    c->run({});
    c->verify();
  }
  CHECK_EQUAL(toy_runs(), std::string("1"));
}

// The CPU backend could run each of them, were it asked: on the CPU it is excluded here, elsewhere it is another
// device's.
TEST(what_it_does_not_provide_is_unsupported_and_never_replaced) {
  const char* who =
      TOY_DEVICE == CLOVER_CPU ? "cpu is not active: not among CLOVER_OPS_BACKENDS" : "provided by: cpu (cpu)";
  const char* device = TOY_DEVICE == CLOVER_CPU ? " on cpu;" : " on rocm:0;";
  const operators::Workspace workspace(1 << 20);
  int refused = 0;
  for (const operators::CasePointer& c : operators::all_cases(DType::kFloat32, kToy)) {
    if (provided(c->name())) continue;
    const check::Context context(c->name());
    const std::string what = std::string(c->name()) + ": no active backend provides it";
    CHECK_THROWS(clover::Unsupported, [&] { c->run(workspace.handle()); }, what, device, who);
    if (c->takes_workspace()) CHECK_THROWS(clover::Unsupported, [&] { c->workspace_size({}); }, what, device, who);
    CHECK(c->unchanged());
    ++refused;
  }
  CHECK(refused >= 14);
  CHECK(workspace.untouched());
  CHECK_EQUAL(toy_runs(), std::string("1"));
}

TEST(warmup_of_a_backend_without_one) {
  clover::warmup(kToy);
}
