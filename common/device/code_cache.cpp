#include "code_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "own_folder.hpp"
#include "sha256.hpp"

namespace clover::device {
namespace {

constexpr char kMagic[] = "CLOVERJ1";
constexpr size_t kDigestBytes = 32;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string users_folder() {
  if (const std::string own = variable("CLOVER_OPS_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); xdg[0] == '/') return xdg + "/clover-ops";
  if (const std::string home = variable("HOME"); home[0] == '/') return home + "/.cache/clover-ops";
  const std::string temporary = variable("TMPDIR");
  const bool usable = !temporary.empty() && access(temporary.c_str(), W_OK | X_OK) == 0;
  return (usable ? temporary : "/tmp") + "/clover-ops-" + std::to_string(getuid());
}

bool inside_an_installation(const std::string& folder) {
  char* real = realpath(folder.c_str(), nullptr);
  const std::string path = std::string(real == nullptr ? folder.c_str() : real) + "/";
  std::free(real);
  return path.find("/site-packages/") != std::string::npos || path.find("/dist-packages/") != std::string::npos;
}

// Makes the folder, readable by its owner alone; returns why it cannot be used, or an empty text.
std::string make_private(const std::string& folder) {
  for (size_t slash = folder.find('/', 1); slash != std::string::npos; slash = folder.find('/', slash + 1))
    mkdir(folder.substr(0, slash).c_str(), 0700);
  struct stat found;
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return folder + ": " + std::strerror(errno);
  if (stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) return folder + " is not a folder";
  if (found.st_uid != getuid()) return folder + " belongs to user " + std::to_string(found.st_uid);
  if ((found.st_mode & 022) != 0) return folder + " can be written by others; chmod 700 it";
  if (inside_an_installation(folder)) return folder + " is inside an installation of Python packages";
  return access(folder.c_str(), W_OK) == 0 ? "" : folder + ": " + std::strerror(errno);
}

template <class Number>
std::string bytes_of(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>(number >> 8 * i);
  return bytes;
}

std::string contents(const std::string& header, const std::string& code) {
  std::string all = kMagic + bytes_of(static_cast<uint32_t>(header.size())) + header;
  all += bytes_of(uint64_t{code.size()}) + code;
  return all + sha256(all);
}

bool write_all(int file, const std::string& data) {
  for (size_t done = 0; done < data.size();) {
    const ssize_t count = write(file, data.data() + done, data.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return fsync(file) == 0;
}

}  // namespace

CodeCache::CodeCache(const std::string& kind) : folder_(users_folder() + "/" + kind) {
  unusable_ = make_private(users_folder());
  if (unusable_.empty()) unusable_ = make_private(folder_);
}

std::string CodeCache::path(const std::string& identity, const char* ending) const {
  return folder_ + "/" + identity + ending;
}

std::string CodeCache::read(const std::string& identity) const {
  return unusable_.empty() ? read_file(path(identity, ".clvk")) : "";
}

std::string CodeCache::load(const std::string& identity, const std::string& header) const {
  const std::string found = read(identity);
  const size_t fixed = std::strlen(kMagic) + 4 + header.size() + 8;
  if (found.size() < fixed + kDigestBytes) return "";
  const std::string code = found.substr(fixed, found.size() - fixed - kDigestBytes);
  return found == contents(header, code) ? code : "";
}

std::string CodeCache::store(const std::string& identity, const std::string& header, const std::string& code) const {
  if (!unusable_.empty()) return unusable_;
  std::string temporary = path(identity, ".XXXXXX");
  const int file = mkstemp(temporary.data());
  if (file < 0) return temporary + ": " + std::strerror(errno);
  const bool written = write_all(file, contents(header, code));
  const int error = errno;
  close(file);
  if (written && rename(temporary.c_str(), path(identity, ".clvk").c_str()) == 0) return "";
  const std::string why = temporary + ": " + std::strerror(written ? errno : error);
  unlink(temporary.c_str());
  return why;
}

CodeCache::Lock::Lock(const CodeCache& cache, const std::string& identity) {
  if (!cache.unusable_.empty()) return;
  file_ = open(cache.path(identity, ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

CodeCache::Lock::~Lock() {
  if (file_ < 0) return;
  flock(file_, LOCK_UN);  // closing is not enough: a process that was forked in between holds the same open file
  close(file_);
}

}  // namespace clover::device
