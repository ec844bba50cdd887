// Broken plugins of every kind beside sound ones: each is recorded with a reason of its own, nothing else suffers.
#include <clover/ops.h>

#include <set>

#include "check.hpp"
#include "json_reader.hpp"
#include "plugin_files.hpp"

namespace {

using namespace plugin_files;

struct Fault {
  std::string name;
  std::string status;
  std::string reason;  // a part of it
  bool opened;         // whether the plugin's library may be opened
  std::string manifest;
};

std::vector<Fault> faults;
fs::path root, markers;

void expect(const std::string& name, const std::string& status, const std::string& reason, bool opened,
            const Lines& manifest) {
  faults.push_back({name, status, reason, opened, write_manifest(root, name, manifest)});
  copy_library(root, name, FAULTY_LIBRARY, "libtoy_" + name + ".so");
}

void rejected_manifest(const std::string& name, const std::string& line, const std::string& by,
                       const std::string& reason) {
  expect(name, "rejected", reason, false, replaced(sound_manifest(name), line, by));
}

void rejected_library(const std::string& name, const std::string& reason) {
  expect(name, "rejected", "libtoy_" + name + ".so: " + reason, true, sound_manifest(name));
}

void write_broken_manifests() {
  rejected_manifest("old_version", "version", "version 0.0.1", "plugin version 0.0.1, core version " EXPECTED_VERSION);
  rejected_manifest("long_version", "version", "version " + std::string(300000, '1'), "plugin version 1111");
  rejected_manifest("newer_abi", "abi", "abi 2", "plugin ABI 2, this core has ABI 1; install clover-ops-newer_abi");
  rejected_manifest("other_format", "clover-plugin", "clover-plugin 2",
                    "manifest format 2, this library reads format 1");
  rejected_manifest("no_format", "clover-plugin", "# a comment", "plugin.manifest:2: not a plugin manifest");
  rejected_manifest("unknown_key", "probe", "colour blue", "plugin.manifest:7: unknown key `colour`");
  rejected_manifest("key_twice", "probe", "abi 1", "plugin.manifest:7: `abi` is given twice");
  rejected_manifest("odd_abi", "abi", "abi -1", "plugin.manifest:4: `abi` must be a whole number, got `-1`");
  rejected_manifest("no_device", "device", "", "lacks `device`");
  rejected_manifest("odd_device", "device", "device tpu", "`device` must be cpu, cuda or rocm, got `tpu`");
  rejected_manifest("folder_in_library", "library", "library ../libtoy.so",
                    "`library` must be a file name without folders");
  rejected_manifest("odd_provider", "provider", "provider cast", "`provider` needs an operator, a slot and a name");
  rejected_manifest("odd_slot", "provider", "provider cast first plain", "`slot` must be a whole number, got `first`");
  rejected_manifest("provider_twice", "provider", "provider cast 0 plain\nprovider cast 0 fancy",
                    "plugin.manifest:9: cast has two providers in slot 0");
  expect("empty", "rejected", "lacks `clover-plugin`", false, {});
  expect("binary", "rejected", "not a plugin manifest", false,
         {std::string("\x7f"
                      "ELF\0\1\2\xff",
                      8),
          std::string(5000, '\0')});
}

void write_broken_libraries() {
  rejected_library("null_entry", "clover_plugin_entry returned null");
  rejected_library("small_struct", "clover_plugin is too small");
  rejected_library("wrong_abi", "its ABI is 99");
  rejected_library("wrong_name", "its name is not `wrong_name`");
  rejected_library("no_name", "its name is not `no_name`");
  rejected_library("wrong_version", "its version is not the manifest's");
  rejected_library("wrong_device", "its device is not `rocm`");
  rejected_library("fewer_providers", "its providers are not those that the manifest lists");
  rejected_library("more_providers", "its providers are not those that the manifest lists");
  rejected_library("other_operator", "its providers are not those that the manifest lists");
  rejected_library("other_provider_name", "its providers are not those that the manifest lists");
  rejected_library("unknown_operator", "provider 0 is malformed or of an unknown operator");
  rejected_library("no_run", "provider 0 is malformed or of an unknown operator");
  rejected_library("small_provider", "provider 0 is malformed or of an unknown operator");
  rejected_library("slot_twice", "two providers of cast have slot 0");
}

// Files that are not the library which the manifest promises.
void write_damaged_files() {
  const auto beside = [](const std::string& name) {
    return root / ("clover_ops_" + name) / ("libtoy_" + name + ".so");
  };
  expect("missing_library", "rejected", "cannot open shared object file", false, sound_manifest("missing_library"));
  fs::remove(beside("missing_library"));
  expect("no_entry", "rejected", "does not export clover_plugin_entry", false, sound_manifest("no_entry"));
  copy_library(root, "no_entry", PROBE_LIBRARY, "libtoy_no_entry.so");
  expect("text_library", "rejected", "libtoy_text_library.so: ", false, sound_manifest("text_library"));
  std::ofstream(beside("text_library")) << "#!/bin/sh\necho this is no library at all; it is a script\n"
                                        << std::string(4096, '\n');
  expect("empty_library", "rejected", "libtoy_empty_library.so: ", false, sound_manifest("empty_library"));
  std::ofstream(beside("empty_library")).flush();
  // What an interrupted download or a full disk leaves: mapped as it is, it would end the process with SIGBUS.
  const uintmax_t size = fs::file_size(FAULTY_LIBRARY);
  for (const int percent : {1, 10, 30, 50, 70}) {
    const std::string name = "truncated_" + std::to_string(percent);
    expect(name, "rejected", "libtoy_" + name + ".so: ", false, sound_manifest(name));
    fs::resize_file(beside(name), size * static_cast<uintmax_t>(percent) / 100);
  }
}

void write_probes() {
  const auto probe = [](const std::string& name, const std::string& file, const char* library) {
    if (library != nullptr) copy_library(root, name, library, file);
    return replaced(sound_manifest(name), "probe", "probe " + file);
  };
  expect("probe_missing", "rejected", "libprobe.so: cannot open", false,
         probe("probe_missing", "libprobe.so", nullptr));
  expect("probe_wrong", "rejected", "does not export clover_plugin_probe", false,
         probe("probe_wrong", "libtoy_probe.so", FAULTY_LIBRARY));
  expect("probe_none", "inactive", "the toy box is empty", false,
         probe("probe_none", "libprobe_none.so", PROBE_LIBRARY));
  expect("probe_silent", "inactive", "no device found", false,
         probe("probe_silent", "libprobe_silent.so", PROBE_LIBRARY));
  expect("probe_one", "active", "", true, probe("probe_one", "libprobe_one.so", PROBE_LIBRARY));
}

const json::Value& plugin_of(const json::Value& described, const Fault& fault) {
  return described["plugins"].with("manifest", fault.manifest);
}

}  // namespace

// Comes first: the process looks for plugins once.
TEST(prepare) {
  root = fresh_folder("plugin_faults");
  markers = fresh_folder("plugin_faults_markers");
  write_broken_manifests();
  write_broken_libraries();
  write_damaged_files();
  write_probes();
  expect("sound", "active", "", true, sound_manifest("sound"));
  set_variable("TOY_MARKERS", markers.string());
  set_variable("CLOVER_OPS_PLUGIN_PATH", root.string() + ":" + TOY_FOLDER);
  CHECK(faults.size() > 40);
}

TEST(every_fault_is_recorded_with_its_reason) {
  const json::Value described = json::parse(clover::describe());
  std::set<std::string> reasons;
  for (const Fault& fault : faults) {
    const check::Context context(fault.name);
    const json::Value& plugin = plugin_of(described, fault);
    CHECK_EQUAL(plugin["status"].text, fault.status);
    CHECK_CONTAINS(plugin["reason"].text, fault.reason);
    CHECK_EQUAL(plugin["reason"].text.empty(), fault.status == "active");
    if (fault.status == "rejected") CHECK(reasons.insert(plugin["reason"].text).second);
    CHECK_EQUAL(plugin["details"].object.size(), size_t{0});
  }
}

TEST(no_library_is_opened_before_its_manifest_and_its_probe_agree) {
  for (const Fault& fault : faults) {
    const check::Context context(fault.name);
    CHECK_EQUAL(fs::exists(markers / fault.name), fault.opened);
  }
}

TEST(sound_plugins_go_on_working) {
  for (const Fault& fault : faults)
    if (fault.status == "active") CHECK(clover::provides(clover::Op::kCast, fault.name.c_str()));
  CHECK(clover::supports(clover::Op::kCast, {CLOVER_ROCM, 0}));
  const float source[2] = {1, 2};
  for (const clover::Device device : {clover::Device{CLOVER_CPU, 0}, clover::Device{CLOVER_ROCM, 0}}) {
    float target[2] = {};
    clover::rearrange({}, {source, clover::DType::kFloat32, {2}, device},
                      {target, clover::DType::kFloat32, {2}, device});
    CHECK_EQUAL(target[1], 2.0f);
  }
}

TEST(a_broken_plugin_is_an_error_only_when_asked_for) {
  clover::discover_plugins();
  for (const Fault& fault : faults) {
    const check::Context context(fault.name);
    if (fault.status == "active") clover::load_plugin(fault.manifest);
    if (fault.status == "inactive")
      CHECK_THROWS(clover::Unsupported, [&] { clover::load_plugin(fault.manifest); }, fault.manifest, fault.reason);
    if (fault.status == "rejected")
      CHECK_THROWS(clover::AbiMismatch, [&] { clover::load_plugin(fault.manifest); }, fault.manifest, fault.reason);
  }
  CHECK_EQUAL(json::parse(clover::describe())["plugins"].list.size(), faults.size() + 2);  // toy and cpu; nobody twice
}
