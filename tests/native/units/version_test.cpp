// Versions compare as PEP 440 has it.
#include "version.hpp"

#include "check.hpp"

using clover::canonical_version;
using clover::same_version;

TEST(canonical_forms) {
  const char* const pairs[][2] = {
      {"0.1.0", "0.1"},
      {"v1.02.0.0", "1.2"},
      {" 1.0 ", "1"},
      {"0.0", "0"},
      {"0!1", "1"},
      {"01!1", "1!1"},
      {"1.0+local.7", "1"},
      {"1.0ALPHA1", "1a1"},
      {"1.0-beta.2", "1b2"},
      {"1.0c3", "1rc3"},
      {"1.0_preview4", "1rc4"},
      {"1.0pre", "1rc0"},
      {"1.0-5", "1.post5"},
      {"1.0.rev6", "1.post6"},
      {"1.0r", "1.post0"},
      {"1.0.dev", "1.dev0"},
      {"1.0-DEV07", "1.dev7"},
      {"1!2.3a4.post5.dev6+x", "1!2.3a4.post5.dev6"},
      {"1.0.10", "1.0.10"},
      {"10.0", "10"},
      {"2026.12.01", "2026.12.1"},
  };
  for (const auto& pair : pairs) CHECK_EQUAL(canonical_version(pair[0]), std::string(pair[1]));
}

TEST(what_is_no_version_stays) {
  for (const char* text : {"", "banana", "1.0.", "1..0", ".1", "1.0 2", "1.0+", "1.0+a_", "vv1", "1.0alpha1beta2"})
    CHECK_EQUAL(canonical_version(text), std::string(text));
}

TEST(same_and_different) {
  CHECK(same_version("0.1.0", "0.1"));
  CHECK(same_version("1.0rc1", "1.0.0-preview_1"));
  CHECK(!same_version("0.1.0", "0.1.1"));
  CHECK(!same_version("1.0", "1.0rc1"));
  CHECK(!same_version("1.0", "1.0.dev0"));
  CHECK(!same_version("1.0", "1.0.post0"));
  CHECK(!same_version("1!1.0", "1.0"));
  CHECK(!same_version("1.0", "10"));
}

TEST(a_text_of_any_length_is_harmless) {
  const std::string long_text(1 << 20, '1');
  CHECK(canonical_version(long_text) == long_text);
  CHECK(!same_version("1" + std::string(1 << 20, '.'), "1"));
}
