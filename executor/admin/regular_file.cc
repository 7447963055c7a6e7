#include "executor/admin/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "libs/base/files.h"

namespace executor {

base::Result<RegularFile> open_regular_file(std::string_view what,
                                            const std::filesystem::path& path, int flags) {
  base::Fd file(::open(path.c_str(), flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0) return base::errno_error(what, path, errno);
  if (!S_ISREG(found.st_mode))
    return base::error(base::ErrorCode::kInvalid, path.string(), " is not a file");
  return RegularFile{std::move(file), found.st_size};
}

}  // namespace executor
