#include "libs/manifests/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "libs/base/staged.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::Result;

namespace {

Disk::Step step_of(Durable durable) {
  return durable == Durable::kPastPowerLoss ? Disk::Step::kChange : Disk::Step::kLoose;
}

Result<Done> sync_path(const fs::path& path) {
  const base::Fd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened || ::fsync(opened.get()) != 0) return base::errno_error("sync", path, errno);
  return Done{};
}

}  // namespace

Result<Done> Disk::write(const fs::path& path, std::string_view content, mode_t mode,
                         Durable durable) const {
  CHECK_OK(ask(path, step_of(durable)));
  return base::write_file_atomically(path, content, mode, durable);
}

Result<Done> Disk::remove(const fs::path& path, Durable durable) const {
  CHECK_OK(ask(path, step_of(durable)));
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return Done{};
    return base::errno_error("remove", path, errno);
  }
  if (durable == Durable::kPastPowerLoss) return sync_path(path.parent_path());
  return Done{};
}

Result<base::Fd> Disk::create(const fs::path& path, mode_t mode) const {
  CHECK_OK(ask(path, Step::kChange));
  base::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, mode));
  if (!file) return base::errno_error("make", path, errno);
  if (auto there = sync_path(path.parent_path()); !there) {
    ::unlink(path.c_str());
    return there.error();
  }
  return file;
}

Result<Done> Disk::append(const fs::path& path, std::string_view lines, mode_t mode) const {
  CHECK_OK(ask(path, Step::kAppend));
  const base::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode));
  if (!file) return base::errno_error("write", path, errno);
  return base::write_all(file.get(), lines);
}

Result<Done> Disk::append(const base::Fd& file, const fs::path& path,
                          std::string_view lines) const {
  CHECK_OK(ask(path, Step::kAppend));
  const auto wrote = base::write_all(file.get(), lines);
  if (!wrote)
    return base::error(wrote.error().code, wrote.error().message, " (", path.string(), ")");
  return Done{};
}

Result<Done> Disk::sync(const fs::path& path) const {
  CHECK_OK(ask(path, Step::kSync));
  return sync_path(path);
}

Result<Done> Disk::sync(const base::Fd& file, const fs::path& path) const {
  CHECK_OK(ask(path, Step::kSync));
  if (::fdatasync(file.get()) != 0) return base::errno_error("sync", path, errno);
  return Done{};
}

std::size_t Disk::sweep(const fs::path& folder, base::Seconds unchanged) const {
  const auto since = fs::file_time_type::clock::now() - unchanged;
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end;
       !error && entry != end && left.size() < kSweptMax; entry.increment(error)) {
    std::error_code gone;
    const bool is_left = base::is_staged_name(entry->path().filename().string()) &&
                         fs::is_regular_file(entry->symlink_status(gone)) &&
                         entry->last_write_time(gone) <= since && !gone;
    if (is_left) left.push_back(entry->path());
  }
  std::size_t swept = 0;
  for (const fs::path& path : left) swept += remove(path, Durable::kPastProcess).ok() ? 1 : 0;
  return swept;
}

Result<Done> Disk::make_folders(const fs::path& path) const {
  std::error_code ignored;
  if (path.empty() || fs::is_directory(path, ignored)) return Done{};
  const fs::path parent = path.parent_path();
  if (parent != path) CHECK_OK(make_folders(parent));
  CHECK_OK(ask(path, Step::kChange));
  CHECK_OK(base::make_folders(path, 0700));
  // Its name too, or all that is synced in it goes with it.
  auto named = sync(parent.empty() ? fs::path(".") : parent);
  if (!named) ::rmdir(path.c_str());  // So that the next try does not take it for granted.
  return named;
}

}  // namespace manifests
