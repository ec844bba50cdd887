#include "artifact.hpp"

#include "common/device/sha256.hpp"

namespace clover::jit {

namespace {

constexpr std::string_view kMagic = "CLOVERJ1";
constexpr size_t kDigestBytes = 32;

struct Key {
  std::string_view name;
  bool number;
};

// Sorted, as the header has them.
constexpr Key kKeys[] = {{"architecture", false},
                         {"arguments", false},
                         {"binary_kind", false},
                         {"extra_arguments", false},
                         {"features", false},
                         {"global_scratch_alignment", true},
                         {"global_scratch_bytes", true},
                         {"identity", false},
                         {"kernel", false},
                         {"num_stages", true},
                         {"num_warps", true},
                         {"profile_scratch_alignment", true},
                         {"profile_scratch_bytes", true},
                         {"request", false},
                         {"shared_bytes", true},
                         {"source", false},
                         {"symbol", false},
                         {"target", false},
                         {"triton", false},
                         {"warp_size", true}};

[[noreturn]] void damaged(const std::string& where, const std::string& what) {
  throw ArtifactFailure(Problem::kDamaged, where + ": " + what);
}

// `more` bytes from `at` on must be there; written so that no length in a damaged file overflows.
void need(std::string_view data, size_t at, uint64_t more, const std::string& where) {
  if (data.size() >= at && data.size() - at >= more) return;
  throw ArtifactFailure(Problem::kTruncated, where + ": truncated: " + std::to_string(data.size()) + " bytes, " +
                                                 std::to_string(more) + " more expected after the first " +
                                                 std::to_string(at));
}

uint64_t little_endian(std::string_view data, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(data[at + i])} << 8 * i;
  return value;
}

// At most 18 digits: what fits a uint64_t beyond doubt.
bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::map<std::string, std::string> parse_header(std::string_view text, const std::string& where) {
  std::map<std::string, std::string> header;
  for (const Key& key : kKeys) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const size_t name = key.name.size();
    if (end == std::string_view::npos || line.substr(0, name) != key.name || line.substr(name, 2) != ": ") {
      damaged(where, "the header must go on with `" + std::string(key.name) + ": `, got `" + std::string(line) + "`");
    }
    const std::string_view value = line.substr(name + 2);
    if (key.number && !is_number(value)) {
      damaged(where, std::string(key.name) + " must be a number, got `" + std::string(value) + "`");
    }
    header.emplace(key.name, value);
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) damaged(where, "the header has more than its keys: `" + std::string(text) + "`");
  return header;
}

}  // namespace

uint64_t Artifact::number(const char* key) const {
  return std::stoull(header.at(key));
}

Artifact parse_artifact(std::string_view data, const std::string& where) {
  if (data.substr(0, kMagic.size()) != kMagic.substr(0, data.size())) {
    damaged(where, "does not begin with " + std::string(kMagic) + ": no compiled kernel, or of another format");
  }
  const size_t header_at = kMagic.size() + 4;
  need(data, 0, header_at, where);
  const size_t header_size = little_endian(data, kMagic.size(), 4);
  need(data, header_at, header_size + 8, where);
  const size_t binary_at = header_at + header_size + 8;
  const uint64_t binary_size = little_endian(data, binary_at - 8, 8);
  need(data, binary_at, binary_size, where);
  need(data, binary_at + binary_size, kDigestBytes, where);

  const std::string_view body = data.substr(0, data.size() - kDigestBytes);
  if (body.size() != binary_at + binary_size || device::sha256(body) != data.substr(body.size())) {
    damaged(where, "the checksum does not match: the file is damaged");
  }
  return {parse_header(data.substr(header_at, header_size), where), std::string(data.substr(binary_at, binary_size))};
}

void check_artifact(const Artifact& artifact, const std::map<std::string, std::string>& expected,
                    const std::string& where) {
  for (const auto& [key, value] : expected) {
    const std::string& found = artifact.header.at(key);
    if (found == value) continue;
    throw ArtifactFailure(Problem::kForeign,
                          where + ": of another " + key + ": `" + found + "`, asked for `" + value + "`");
  }
}

}  // namespace clover::jit
