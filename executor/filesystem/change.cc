#include "executor/filesystem/change.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "executor/files/removal.h"
#include "executor/filesystem/permit.h"
#include "executor/filesystem/publish.h"
#include "executor/filesystem/version.h"
#include "executor/filesystem/walk.h"

namespace executor {
namespace {

// The place of something whose folder must be there.
FsResult<Place> place_of(const std::string& key) {
  auto place = find_place(key);
  if (!place) return FsError(place.error());
  if (!place->missing.empty()) return FsError("find the folder of", key, ENOENT);
  return *std::move(place);
}

FsResult<EntryKind> kind_at(const Place& place, const std::string& key) {
  struct stat found{};
  if (::fstatat(place.folder.get(), place.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    return FsError("look at", key, errno);
  return kind_of(found.st_mode);
}

FsError exists(const std::string& key) {
  return fs_error(FsCode::kNotObserved, key, " exists already");
}

}  // namespace

FsResult<bool> make_directory(const std::string& key, const MakeRequest& request) {
  if (key == "/") return false;
  auto place = find_place(key);
  if (!place) return FsError(place.error());
  if (place->missing.empty()) {
    const auto kind = kind_at(*place, key);
    if (kind && *kind == EntryKind::kFolder) return false;
    if (kind) return fs_error(FsCode::kNotDirectory, key, " is not a folder");
    if (kind.error().fs != FsCode::kNotFound) return kind.error();
  }
  CHECK_OK(permit(request.permission, key));
  if (!place->missing.empty() && !request.parents) return FsError("make folder", key, ENOENT);
  base::Fd folder = std::move(place->folder);
  for (const std::string& name : place->missing) {
    if (::mkdirat(folder.get(), name.c_str(), 0777) != 0 && errno != EEXIST)
      return FsError("make folder", key, errno);
    folder = base::Fd(
        ::openat(folder.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return FsError("make folder", key, errno);
  }
  if (::mkdirat(folder.get(), place->name.c_str(), 0777) != 0) {
    if (errno == EEXIST) return make_directory(key, request);
    return FsError("make folder", key, errno);
  }
  if (!request.mode) return true;
  const base::Fd made(
      ::openat(folder.get(), place->name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made || ::fchmod(made.get(), *request.mode) != 0)
    return FsError("set the mode of", key, errno);
  return true;
}

FsResult<Removed> remove_pass(const std::string& key, const RemoveRequest& request,
                              const std::stop_token& abort) {
  CHECK_OK(permit(request.permission, key));
  if (const auto objection = objection_to_removal(key)) return FsError(*objection);
  TRY(const Place place, place_of(key));
  return remove_some(place.folder, place.name, key,
                     {.recursive = request.recursive, .entries_max = kRemovedAtOnceMax}, abort);
}

FsResult<base::Done> move_to(const std::string& from, const std::string& to,
                             const MoveRequest& request) {
  CHECK_OK(permit(request.permission, from));
  CHECK_OK(permit(request.permission, to));
  TRY(const Place source, place_of(from));
  CHECK_OK(kind_at(source, from));
  TRY(const Place target, place_of(to));
  const auto moved = move_name(source.folder, source.name, target.folder, target.name,
                               request.replace ? Replace::kAllowed : Replace::kNever);
  if (moved) return base::Done{};
  switch (moved.error().error_number) {
    case EEXIST:
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
      return exists(to);
    default:
      return FsError("move " + from + " to", to, moved.error().error_number);
  }
}

}  // namespace executor
