// Which plugins a process takes: CLOVER_OPS_BACKENDS, CLOVER_OPS_PLUGIN_PATH, duplicates.
#include <clover/ops.h>

#include "check.hpp"
#include "json_reader.hpp"
#include "plugin_files.hpp"

namespace {

using namespace plugin_files;

fs::path root, markers;
std::string twin_manifest, excluded_manifest, toy_manifest = TOY_FOLDER "/plugin.manifest";

std::string status_and_reason(const std::string& manifest) {
  const json::Value described = json::parse(clover::describe());
  const json::Value& plugin = described["plugins"].with("manifest", manifest);
  return plugin["status"].text + ": " + plugin["reason"].text;
}

}  // namespace

// Comes first: the process looks for plugins once.
TEST(prepare) {
  root = fresh_folder("plugin_choice");
  markers = fresh_folder("plugin_choice_markers");
  twin_manifest = write_manifest(root, "twin", replaced(sound_manifest("twin"), "name", "name toy"));
  copy_library(root, "twin", FAULTY_LIBRARY, "libtoy_twin.so");
  excluded_manifest = write_manifest(root, "excluded", sound_manifest("excluded"));
  copy_library(root, "excluded", FAULTY_LIBRARY, "libtoy_excluded.so");
  fs::create_directory_symlink(TOY_FOLDER, root / "another_way_to_toy");
  set_variable("TOY_MARKERS", markers.string());
  set_variable("CLOVER_OPS_BACKENDS", "cpu, toy,,nobody");
  // A folder with a manifest, the same one by another way, a manifest, nothing, a folder of plugins.
  set_variable("CLOVER_OPS_PLUGIN_PATH", std::string(TOY_FOLDER) + ":" + (root / "another_way_to_toy").string() +
                                             "::" + toy_manifest + ":/nowhere/at/all:" + root.string());
}

TEST(backends_that_are_not_chosen_stay_out) {
  CHECK_EQUAL(status_and_reason(excluded_manifest), std::string("inactive: not among CLOVER_OPS_BACKENDS"));
  CHECK(!fs::exists(markers / "excluded"));
  // What it would provide is known, and not to be had.
  CHECK(clover::provides(clover::Op::kCast, "excluded"));
  CHECK(!clover::provides(clover::Op::kFusedMoe, "excluded"));
  CHECK(!clover::supports(clover::Op::kCast, {CLOVER_ROCM, 0}));
  CHECK_THROWS(clover::Unsupported, [] { clover::load_plugin(excluded_manifest); }, "not among CLOVER_OPS_BACKENDS");
  CHECK(!fs::exists(markers / "excluded"));
}

TEST(backends_that_are_chosen_work) {
  CHECK_EQUAL(status_and_reason(fs::canonical(toy_manifest).string()), std::string("active: "));
  CHECK(clover::supports(clover::Op::kRearrange, {CLOVER_ROCM, 0}));
  CHECK(clover::supports(clover::Op::kRearrange, {CLOVER_CPU, 0}));
}

TEST(a_manifest_counts_once_however_it_is_found) {
  const auto count = [] { return json::parse(clover::describe())["plugins"].list.size(); };
  CHECK_EQUAL(count(), size_t{5});  // toy, twin, excluded, cpu and the entry that holds nothing
  clover::load_plugin(toy_manifest);
  clover::load_plugin((root / "another_way_to_toy" / "plugin.manifest").string());
  clover::discover_plugins();
  CHECK_EQUAL(count(), size_t{5});
}

TEST(one_backend_does_not_load_twice) {
  const std::string state = status_and_reason(twin_manifest);
  CHECK_CONTAINS(state, "rejected: backend `toy` is already loaded from ");
  CHECK_CONTAINS(state, fs::canonical(toy_manifest).string());
  CHECK(!fs::exists(markers / "twin"));
}

TEST(a_search_path_that_holds_nothing_is_told) {
  CHECK_CONTAINS(status_and_reason("/nowhere/at/all"), "rejected: /nowhere/at/all: cannot be read");
}

TEST(a_refused_call_tells_what_is_not_active) {
  const float source[2] = {1, 2};
  float target[2] = {};
  const clover::Device device{CLOVER_ROCM, 0};
  CHECK_THROWS(
      clover::Unsupported,
      [&] {
        clover::cast({}, {source, clover::DType::kFloat32, {2}, device},
                     {target, clover::DType::kFloat32, {2}, device});
      },
      "cast: no active backend provides it on rocm:0", "provided by: cpu (cpu)",
      "excluded is not active: not among CLOVER_OPS_BACKENDS");
}
