// Providers that throw, fail and refuse: the caller sees errors of its own runtime that say who failed and why.
#include <clover/ops.h>

#include "check.hpp"
#include "operators/workspace.hpp"
#include "plugin_files.hpp"

namespace {

using namespace plugin_files;

void rearrange(int32_t slot, const clover::Handle& other = {}) {
  static const float source[2] = {1, 2};
  static float target[2];
  const clover::Device device{CLOVER_ROCM, 0};
  clover::Handle handle = other;
  handle.provider_slot = slot;
  clover::rearrange(handle, {source, clover::DType::kFloat32, {2}, device},
                    {target, clover::DType::kFloat32, {2}, device});
}

}  // namespace

TEST(prepare) {
  const fs::path root = fresh_folder("provider_misbehaviour");
  Lines lines = replaced(sound_manifest("moody"), "provider", "");
  const char* names[] = {"throws-an-error", "throws-a-number", "driver-fails",  "compile-fails",
                         "unknown-status",  "refuses",         "accept-throws", "wants-workspace"};
  for (int i = 0; i < 8; ++i) lines.push_back("provider rearrange " + std::to_string(i + 1) + " " + names[i]);
  const std::string manifest = write_manifest(root, "moody", lines);
  copy_library(root, "moody", MOODY_LIBRARY, "libtoy_moody.so");
  clover::load_plugin(manifest);
  CHECK(clover::provides(clover::Op::kRearrange, "moody"));
}

TEST(exceptions_stay_in_the_plugin) {
  CHECK_THROWS(
      clover::InternalError, [] { rearrange(1); }, "rearrange: moody provider 1 (throws-an-error): thrown in a plugin");
  CHECK_THROWS(
      clover::InternalError, [] { rearrange(2); }, "moody provider 2 (throws-a-number): an exception of unknown type");
  CHECK_THROWS(clover::Unsupported, [] { rearrange(7); }, "moody provider 7 (accept-throws): thrown while asked");
}

TEST(failures_keep_their_kind) {
  CHECK_THROWS(clover::DriverError, [] { rearrange(3); }, "moody provider 3 (driver-fails): the driver said 719");
  CHECK_THROWS(clover::CompileError, [] { rearrange(4); }, "moody provider 4 (compile-fails): no kernel for gfx000");
  CHECK_THROWS(clover::InternalError, [] { rearrange(5); }, "moody provider 5 (unknown-status): odd");
}

TEST(a_refusal_lists_every_reason) {
  CHECK_THROWS(
      clover::Unsupported, [] { rearrange(6); }, "rearrange: no provider in slot 6 on rocm:0 takes this call",
      "moody provider 6 (refuses): not in the mood", "moody provider 5 (unknown-status): another slot was asked for");
}

TEST(a_workspace_is_handed_on) {
  CHECK_THROWS(clover::MissingWorkspace, [] { rearrange(8); }, "rearrange: workspace is missing, it needs 512 bytes");
  const operators::Workspace workspace(512);
  rearrange(8, workspace.handle());
  CHECK(workspace.guard_intact());
}

// A plugin without device_count has one device.
TEST(devices_that_are_not_there) {
  CHECK(clover::supports(clover::Op::kRearrange, {CLOVER_ROCM, 0}));
  CHECK(!clover::supports(clover::Op::kRearrange, {CLOVER_ROCM, 1}));
}
