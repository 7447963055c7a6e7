#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/files/file_error.h"
#include "libs/base/fd.h"

// From the root to a canonical path through folders alone: where one of its names has become a
// link since, it is ELOOP and never another file. All of it blocks, but for what says otherwise.
namespace executor {

// The last name may be a link with O_PATH, which then opens the link itself. O_CLOEXEC and
// O_NOFOLLOW are always added.
FileResult<base::Fd> open_without_links(const std::string& path, int flags);

// The same as O_PATH, and as far as the kernel has all of the path in memory: it does not wait for
// a disk, nor for whoever else may serve a folder (openat2(2), RESOLVE_CACHED).
std::optional<base::Fd> open_from_memory(const std::string& path);

// "/a/b/c" of "/a/b" and "c".
std::string below(const std::string& folder, std::string_view name);
// "/a/b" and "c" of "/a/b/c".
std::pair<std::string, std::string> parent_and_name(const std::string& path);

// What is open as O_PATH, for reading: it is the same one, whatever has its name by now.
FileResult<base::Fd> reopen(const base::Fd& place, const std::string& path, int flags);

// Where something is to stand: the deepest folder of its path that is there (O_PATH), the folders
// that are missing below that, and its own name.
struct Place {
  base::Fd folder;
  std::string folder_path;
  std::vector<std::string> missing;
  std::string name;
};
// ENOTDIR below something that is no folder; EBUSY for the root, which stands nowhere.
FileResult<Place> find_place(const std::string& path);

}  // namespace executor
