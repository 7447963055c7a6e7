#include "libs/manifests/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::Result;

Result<Done> Disk::write(const fs::path& path, std::string_view content, mode_t mode) const {
  if (before_change_) CHECK_OK(before_change_(path));
  return base::write_file_atomically(path, content, mode);
}

Result<Done> Disk::remove(const fs::path& path) const {
  if (before_change_) CHECK_OK(before_change_(path));
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return Done{};
    return base::errno_error("remove", path, errno);
  }
  base::Fd folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0)
    return base::errno_error("sync", path.parent_path(), errno);
  return Done{};
}

Result<Done> Disk::append(const fs::path& path, std::string_view lines, mode_t mode,
                          bool durable) const {
  if (before_change_) CHECK_OK(before_change_(path));
  base::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode));
  if (!file) return base::errno_error("write", path, errno);
  CHECK_OK(base::write_all(file.get(), lines));
  if (durable && ::fsync(file.get()) != 0) return base::errno_error("sync", path, errno);
  return Done{};
}

Result<Done> Disk::make_folders(const fs::path& path) const {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return Done{};
  if (before_change_) CHECK_OK(before_change_(path));
  return base::make_folders(path, 0700);
}

}  // namespace manifests
