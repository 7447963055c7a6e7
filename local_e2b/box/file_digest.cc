#include "local_e2b/box/file_digest.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "libs/base/fd.h"
#include "libs/base/file_digest.h"
#include "libs/base/files.h"

namespace local_e2b {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

base::Result<std::string> FileDigest::of(const std::filesystem::path& file) {
  const base::Fd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found{};
  if (!opened || ::fstat(opened.get(), &found) != 0) return base::errno_error("read", file, errno);
  const Version version{file,
                        found.st_dev,
                        found.st_ino,
                        found.st_size,
                        nanoseconds(found.st_mtim),
                        nanoseconds(found.st_ctim)};
  const std::lock_guard lock(mutex_);
  if (known_ == version) return digest_;
  TRY(digest_, base::sha256_of(opened, file));
  known_ = version;
  return digest_;
}

}  // namespace local_e2b
