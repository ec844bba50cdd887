// SHA-256 (FIPS 180-4), for the digests that name and check compiled kernels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace clover::jit {

std::array<uint8_t, 32> sha256(std::string_view data);

std::string sha256_hex(std::string_view data);

}  // namespace clover::jit
