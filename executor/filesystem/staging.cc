#include "executor/filesystem/staging.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "executor/filesystem/removing.h"
#include "executor/filesystem/seam.h"
#include "executor/filesystem/stagings.h"
#include "libs/base/log.h"

namespace executor {

Staging::~Staging() { clear(); }

mode_t Staging::umask() const { return all_->umask_; }

void Staging::clear() {
  if (!all_) return;
  file_.reset();
  folder_.reset();
  if (parent_ && !left_out(Mechanism::kClearing)) {
    const auto removed = remove_some(parent_, name_, path_, kRemoveOurOwn, {});
    // It stays on record, and goes at the next start.
    if (!removed && removed.error().fs != FsCode::kNotFound)
      base::log::warn("cannot remove what was half-written", {{"error", removed.error()}});
  }
  all_->ended(*this);
  all_.reset();
}

// False where the filesystem has no such files, or anything else is wrong.
bool Staging::open_without_name(const Place& place) {
  if (left_out(Mechanism::kNameless)) return false;
  path_ = place.folder_path;
  file_ = base::Fd(::openat(place.folder.get(), ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  return static_cast<bool>(file_);
}

FsResult<base::Done> Staging::make_folder(const Place& place) {
  CHECK_OK(all_->settle(*this, place));
  if (::mkdirat(parent_.get(), name_.c_str(), 0700) != 0)
    return FsError("write in", parent_path_, errno);
  folder_ = base::Fd(
      ::openat(parent_.get(), name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder_) return FsError("write in", parent_path_, errno);
  return base::Done{};
}

FsResult<base::Done> Staging::link_file(const base::Fd& folder, const std::string& name) {
  const std::string itself = "/proc/self/fd/" + std::to_string(file_.get());
  if (::linkat(AT_FDCWD, itself.c_str(), folder.get(), name.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return FsError("write in", parent_path_, errno);
  return base::Done{};
}

FsResult<base::Done> Staging::name_content(const Place& place) {
  if (parent_) return base::Done{};
  CHECK_OK(all_->settle(*this, place));
  return link_file(parent_, name_);
}

FsResult<base::Done> Staging::wrap_content(const Place& place) {
  if (folder_) return base::Done{};
  CHECK_OK(make_folder(place));
  return link_file(folder_, kContent);
}

FsResult<base::Done> Staging::make_file() {
  file_ = base::Fd(
      ::openat(folder_.get(), kContent, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) return FsError("write in", path_, errno);
  return base::Done{};
}

FsResult<base::Done> Staging::count(std::uint64_t bytes) {
  if (bytes > all_->limits_.file_bytes - std::min(size_, all_->limits_.file_bytes))
    return fs_error(FsCode::kTooLarge, "a file can be written up to ",
                    std::to_string(all_->limits_.file_bytes), " bytes");
  if (!all_->take_bytes(bytes))
    return fs_busy("the files being written hold too many bytes together; try again");
  counted_ += bytes;
  size_ += bytes;
  return base::Done{};
}

FsResult<base::Done> Staging::write_at(std::uint64_t offset, std::string_view bytes) {
  if (offset > size_)
    return fs_error(FsCode::kIoError, "bytes ", std::to_string(size_), " to ",
                    std::to_string(offset), " of the content are missing");
  const std::uint64_t end = offset + bytes.size();
  if (end > size_) CHECK_OK(count(end - size_));
  while (!bytes.empty()) {
    const ssize_t wrote =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return FsError("write", path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return base::Done{};
}

}  // namespace executor
