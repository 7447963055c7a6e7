#include "executor/admin/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "executor/admin/regular_file.h"
#include "libs/base/files.h"

namespace executor {

base::Result<base::Done> log_to(const std::filesystem::path& path) {
  TRY(const RegularFile file, open_regular_file("open the log", path, O_WRONLY | O_APPEND));
  if (::dup2(file.fd.get(), STDERR_FILENO) < 0) return base::errno_error("write to", path, errno);
  return base::Done{};
}

void bound_log() {
  struct stat found{};
  if (::fstat(STDERR_FILENO, &found) == 0 && S_ISREG(found.st_mode) &&
      static_cast<std::size_t>(found.st_size) > kLogBytesMax)
    static_cast<void>(!::ftruncate(STDERR_FILENO, 0));
}

}  // namespace executor
