#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/files/file_error.h"
#include "libs/base/mountinfo.h"

namespace executor {

// With all that is below it; what is not there is already removed. `path` is absolute and clean.
// Before anything is removed: EINVAL when it is the root, EBUSY when it is a mount point or has one
// below it, of which the kernel would leave half. Blocks: call it off the loop.
FileResult<base::Done> remove_entry(const std::string& path);

// Why `path` is not to be removed at all: what remove_entry() says of the root and of mount points.
std::optional<FileError> objection_to_removal(const std::filesystem::path& path);

// The first of the mount points at `place` or below it.
std::optional<std::filesystem::path> mount_point_within(
    const std::filesystem::path& place, const std::vector<base::MountPoint>& mounts);

}  // namespace executor
