// Device code that was compiled on this machine, kept for the next process: one self-checking file for each identity.
//
// A file is `CLOVERJ1`, the header's length (32 bits, little-endian), the header in lines `key: value`, the code's
// length (64 bits), the code, and the SHA-256 of all that. One that is damaged or another's is compiled anew, never
// loaded.
#pragma once

#include <string>

namespace clover::device {

class CodeCache {
 public:
  // The user's folder: CLOVER_OPS_CACHE_DIR, else XDG's, else ~/.cache/clover-ops, else one of the user's own in the
  // temporary folder; `kind` is a folder in it.
  explicit CodeCache(const std::string& kind);

  const std::string& folder() const { return folder_; }

  // Why nothing can be kept there, or an empty text.
  const std::string& unusable() const { return unusable_; }

  // The file of this identity, whatever it holds; empty when there is none.
  std::string read(const std::string& identity) const;

  // The code that was stored under this identity with exactly this header; empty when there is none.
  std::string load(const std::string& identity, const std::string& header) const;

  // Returns why it could not be stored, or an empty text.
  std::string store(const std::string& identity, const std::string& header, const std::string& code) const;

  // While it lives, no other process compiles this identity.
  class Lock {
   public:
    Lock(const CodeCache& cache, const std::string& identity);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int file_ = -1;
  };

 private:
  std::string path(const std::string& identity, const char* ending) const;

  std::string folder_, unusable_;
};

}  // namespace clover::device
