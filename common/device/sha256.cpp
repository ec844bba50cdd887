#include "sha256.hpp"

#include <cstdint>
#include <cstring>

namespace clover::device {
namespace {

constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotate(uint32_t word, int bits) {
  return word >> bits | word << (32 - bits);
}

void take_block(const unsigned char* block, uint32_t (&state)[8]) {
  uint32_t words[64];
  for (int i = 0; i < 16; ++i)
    words[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
               block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    const uint32_t before = words[i - 15], last = words[i - 2];
    words[i] = words[i - 16] + (rotate(before, 7) ^ rotate(before, 18) ^ before >> 3) + words[i - 7] +
               (rotate(last, 17) ^ rotate(last, 19) ^ last >> 10);
  }
  uint32_t v[8];
  std::memcpy(v, state, sizeof(v));
  for (int i = 0; i < 64; ++i) {
    const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    const uint32_t first =
        v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) + choice + kRounds[i] + words[i];
    const uint32_t second = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) + majority;
    for (int j = 7; j > 0; --j) v[j] = v[j - 1];
    v[4] += first;
    v[0] = first + second;
  }
  for (int i = 0; i < 8; ++i) state[i] += v[i];
}

}  // namespace

std::string sha256(std::string_view data) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded(data);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(uint64_t{data.size()} * 8 >> shift);
  for (size_t at = 0; at < padded.size(); at += 64)
    take_block(reinterpret_cast<const unsigned char*>(padded.data()) + at, state);
  std::string digest;
  for (const uint32_t word : state)
    for (int shift = 24; shift >= 0; shift -= 8) digest += static_cast<char>(word >> shift);
  return digest;
}

std::string sha256_hex(std::string_view data) {
  std::string text;
  for (const unsigned char byte : sha256(data)) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace clover::device
