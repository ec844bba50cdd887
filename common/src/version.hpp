// Versions compared as PEP 440 does: `1.0`, `v1.0.0` and `1.0+local` name one release of the project.
#pragma once

#include <string>

namespace clover {

// The public version in canonical form: lower case, no local part, no leading v or zeros, no trailing `.0` in the
// release, `alpha` as `a`, `c`, `pre` and `preview` as `rc`, `rev`, `r` and `-1` as `.post`. Text that is no version
// stays as it is.
std::string canonical_version(const std::string& text);

inline bool same_version(const std::string& a, const std::string& b) {
  return canonical_version(a) == canonical_version(b);
}

}  // namespace clover
