#include "executor/admin/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "libs/base/fd.h"
#include "libs/base/files.h"

namespace executor {

base::Result<base::Done> log_to(const std::filesystem::path& path) {
  // Not through a link, and not waiting for the other end of a pipe that somebody put there.
  const base::Fd file(::open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0)
    return base::errno_error("open the log", path, errno);
  if (!S_ISREG(found.st_mode))
    return base::error(base::ErrorCode::kInvalid, path.string(), " is not a file");
  if (::dup2(file.get(), STDERR_FILENO) < 0) return base::errno_error("write to", path, errno);
  return base::Done{};
}

void bound_log() {
  struct stat found{};
  if (::fstat(STDERR_FILENO, &found) == 0 && S_ISREG(found.st_mode) &&
      static_cast<std::size_t>(found.st_size) > kLogBytesMax)
    static_cast<void>(!::ftruncate(STDERR_FILENO, 0));
}

}  // namespace executor
