#include "executor/files/removal.h"

#include <cerrno>

#include "executor/files/path.h"

namespace executor {

namespace fs = std::filesystem;

std::optional<FileError> objection_to_removal(const fs::path& path) {
  if (path == path.root_path())
    return FileError(
        base::error(base::ErrorCode::kInvalid, "'/' holds everything and is not removed"), EINVAL);
  std::error_code failed;
  // A link at the end is what is removed; those before it are followed.
  const fs::path parent = fs::canonical(path.parent_path(), failed);
  const auto text = base::read_file("/proc/self/mountinfo");
  if (failed || !text) return std::nullopt;  // The kernel objects then, one name at a time.
  const auto mount = mount_point_within(parent / path.filename(), base::parse_mountinfo(*text));
  if (!mount) return std::nullopt;
  return FileError(base::error(base::ErrorCode::kInvalid, "cannot remove '", path.string(), "': '",
                               mount->string(), "' is a mount point"),
                   EBUSY);
}

std::optional<fs::path> mount_point_within(const fs::path& place,
                                           const std::vector<base::MountPoint>& mounts) {
  for (const base::MountPoint& mount : mounts)
    if (is_within(mount.path.native(), place.native())) return mount.path;
  return std::nullopt;
}

FileResult<base::Done> remove_entry(const std::string& path) {
  if (auto objection = objection_to_removal(path)) return *std::move(objection);
  std::error_code failed;
  fs::remove_all(path, failed);
  if (failed) return FileError("remove", path, failed.value());
  return base::Done{};
}

}  // namespace executor
