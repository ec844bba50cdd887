// SHA-256 (FIPS 180-4).
#pragma once

#include <string>
#include <string_view>

namespace clover::device {

std::string sha256(std::string_view data);      // 32 bytes
std::string sha256_hex(std::string_view data);  // 64 digits

}  // namespace clover::device
