#include "version.hpp"

#include <regex>

namespace clover {
namespace {

constexpr size_t kLongest = 256;

std::string strip_zeros(const std::string& digits) {
  const size_t first = digits.find_first_not_of('0');
  return first == std::string::npos ? "0" : digits.substr(first);
}

// "1.02.0.0" -> "1.2"
std::string canonical_release(const std::string& release) {
  std::string result;
  size_t start = 0, kept = 0;
  while (start <= release.size()) {
    const size_t dot = std::min(release.find('.', start), release.size());
    const std::string part = strip_zeros(release.substr(start, dot - start));
    result += (start ? "." : "") + part;
    if (part != "0" || start == 0) kept = result.size();
    start = dot + 1;
  }
  return result.substr(0, kept);
}

}  // namespace

std::string canonical_version(const std::string& text) {
  static const std::regex kPattern(
      R"(\s*v?(?:(\d+)!)?(\d+(?:\.\d+)*))"                                     // epoch, release
      R"((?:[-_.]?(alpha|a|beta|b|preview|pre|rc|c)[-_.]?(\d*))?)"             // pre-release
      R"((?:(?:[-_.]?(post|rev|r)[-_.]?(\d*))|(?:-(\d+)))?)"                   // post-release
      R"((?:[-_.]?(dev)[-_.]?(\d*))?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?\s*)",  // development release, local
      std::regex::icase);
  std::smatch m;
  if (text.size() > kLongest) return text;  // std::regex recurses once a character
  if (!std::regex_match(text, m, kPattern)) return text;
  std::string result;
  if (m[1].matched && strip_zeros(m[1]) != "0") result += strip_zeros(m[1]) + "!";
  result += canonical_release(m[2]);
  if (m[3].matched) {
    const char first = static_cast<char>(std::tolower(m[3].str()[0]));
    result += (first == 'a' || first == 'b' ? std::string(1, first) : "rc") + strip_zeros(m[4]);
  }
  if (m[5].matched || m[7].matched) result += ".post" + strip_zeros(m[5].matched ? m[6] : m[7]);
  if (m[8].matched) result += ".dev" + strip_zeros(m[9]);
  return result;
}

}  // namespace clover
