#include "executor/filesystem/walk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "executor/filesystem/seam.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// A link as the last name, where a folder is asked for, is ENOTDIR to the kernel.
int why_no_folder(int parent, const char* name, int error_number) {
  struct stat found{};
  const bool link = error_number == ENOTDIR &&
                    ::fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(found.st_mode);
  return link ? ELOOP : error_number;
}

base::Fd open_at_once(const std::string& path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = resolve;
  return base::Fd(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

// Where the kernel has no openat2, or a filter of system calls refuses it.
FileResult<base::Fd> walk_by_names(const std::string& path, int flags) {
  base::Fd at(::open("/", kFolder));
  std::vector<std::string> names = base::split(path, '/');
  std::erase(names, "");
  for (std::size_t i = 0; at && i + 1 < names.size(); ++i) {
    base::Fd next(::openat(at.get(), names[i].c_str(), kFolder));
    if (!next) return FileError("open", path, why_no_folder(at.get(), names[i].c_str(), errno));
    at = std::move(next);
  }
  if (!at) return FileError("open", "/", errno);
  const char* last = names.empty() ? "." : names.back().c_str();
  base::Fd opened(::openat(at.get(), last, flags));
  if (!opened) return FileError("open", path, why_no_folder(at.get(), last, errno));
  return opened;
}

}  // namespace

FileResult<base::Fd> open_without_links(const std::string& path, int flags) {
  flags |= O_CLOEXEC | O_NOFOLLOW;
  if (left_out(Mechanism::kNoLinks)) {
    base::Fd opened(::open(path.c_str(), flags & ~O_NOFOLLOW));
    if (!opened) return FileError("open", path, errno);
    return opened;
  }
  if (!left_out(Mechanism::kOpenat2)) {
    base::Fd opened = open_at_once(path, flags, RESOLVE_NO_SYMLINKS);
    if (opened) return opened;
    if (errno != ENOSYS && errno != EPERM)
      return FileError("open", path, why_no_folder(AT_FDCWD, path.c_str(), errno));
  }
  return walk_by_names(path, flags);
}

std::optional<base::Fd> open_from_memory(const std::string& path) {
  if (left_out(Mechanism::kNoLinks) || left_out(Mechanism::kOpenat2)) return std::nullopt;
  constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  base::Fd opened = open_at_once(path, kFlags, RESOLVE_NO_SYMLINKS | RESOLVE_CACHED);
  return opened ? std::optional(std::move(opened)) : std::nullopt;
}

std::string below(const std::string& folder, std::string_view name) {
  std::string path = folder == "/" ? "" : folder;
  path += '/';
  path += name;
  return path;
}

std::pair<std::string, std::string> parent_and_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

FileResult<base::Fd> reopen(const base::Fd& place, const std::string& path, int flags) {
  const std::string itself = "/proc/self/fd/" + std::to_string(place.get());
  base::Fd opened(::open(itself.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened) return FileError("open", path, errno);
  return opened;
}

FileResult<Place> find_place(const std::string& path) {
  Place place;
  if (path == "/") return FileError("take the place of", path, EBUSY);
  std::tie(place.folder_path, place.name) = parent_and_name(path);
  for (;;) {
    auto folder = open_without_links(place.folder_path, O_PATH | O_DIRECTORY);
    if (folder) {
      place.folder = *std::move(folder);
      std::reverse(place.missing.begin(), place.missing.end());
      return place;
    }
    if (folder.error().error_number != ENOENT) return folder.error();
    auto [parent, name] = parent_and_name(place.folder_path);
    place.folder_path = std::move(parent);
    place.missing.push_back(std::move(name));
  }
}

}  // namespace executor
