#include "libs/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "libs/base/clock.h"
#include "libs/base/reading.h"
#include "libs/base/staged.h"

namespace base {
namespace fs = std::filesystem;

namespace {

constexpr int kLockTriesMax = 50;
constexpr Milliseconds kLockPause{10};

}  // namespace

Error errno_error(std::string_view what, const fs::path& path, int error_number) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (error_number == ENOENT || error_number == ENOTDIR) code = ErrorCode::kNotFound;
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS)
    code = ErrorCode::kDenied;
  return error(code, "cannot ", what, " ", path.string(), ": ", std::strerror(error_number));
}

Result<std::string> read_file(const fs::path& path, std::size_t bytes_max) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error("read", path, errno);
  return read_to_end(file.get(), path, bytes_max);
}

Result<Done> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return error(ErrorCode::kUnavailable, "cannot write: ", std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return Done{};
}

Result<Done> write_file_atomically(const fs::path& path, std::string_view content, mode_t mode,
                                   Durable durable) {
  const bool synced = durable == Durable::kPastPowerLoss;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path staged = folder / staged_name(path.filename().string());
  {
    Fd file(::open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file) return errno_error("write", staged, errno);
    const auto wrote = write_all(file.get(), content);
    const bool kept =
        wrote && ::fchmod(file.get(), mode) == 0 && (!synced || ::fsync(file.get()) == 0);
    if (!kept) {
      const Error failed =
          wrote ? errno_error("write", staged, errno)
                : error(wrote.error().code, wrote.error().message, " (", path.string(), ")");
      ::unlink(staged.c_str());
      return failed;
    }
  }
  if (::rename(staged.c_str(), path.c_str()) != 0) {
    const Error failed = errno_error("replace", path, errno);
    ::unlink(staged.c_str());
    return failed;
  }
  if (!synced) return Done{};
  Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return errno_error("sync", folder, errno);
  return Done{};
}

Result<Done> make_folders(const fs::path& path, mode_t mode) {
  fs::path walked;
  for (const fs::path& part : path) {
    walked /= part;
    if (::mkdir(walked.c_str(), mode) == 0 || errno == EEXIST) continue;
    // A read-only parent answers EROFS or EACCES even for a folder that is there.
    struct stat found{};
    if (::stat(walked.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) continue;
    return errno_error("make folder", walked, errno);
  }
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return errno_error("make folder", path, errno);
  if (!S_ISDIR(found.st_mode)) return error(ErrorCode::kInvalid, path.string(), " is not a folder");
  return Done{};
}

Result<Fd> lock_file(const fs::path& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return errno_error("open lock", path, errno);
  for (int tries = 1; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) return errno_error("lock", path, errno);
    if (tries == kLockTriesMax)
      return error(ErrorCode::kConflict, path.string(), " is locked by another process");
    std::this_thread::sleep_for(kLockPause);
  }
  return file;
}

Result<bool> is_locked(const fs::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return false;
  if (!file) return errno_error("open lock", path, errno);
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return errno_error("look at lock", path, errno);
}

}  // namespace base
