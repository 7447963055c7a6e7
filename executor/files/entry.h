#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "executor/files/file_error.h"
#include "executor/users/users.h"
#include "libs/base/clock.h"

namespace executor {

enum class EntryKind { kOther, kFile, kFolder, kSymlink };
EntryKind kind_of(mode_t mode);

// What is at a path. A symlink shows its target's kind, mode and size beside symlink_target; one
// that leads nowhere shows itself.
struct Entry {
  std::string name;
  std::string path;
  EntryKind kind = EntryKind::kOther;
  std::int64_t size = 0;
  std::uint32_t mode = 0;   // The nine permission bits and set-id, sticky.
  std::string permissions;  // "-rw-r--r--"
  std::string owner, group;
  base::WallTime modified;
  std::optional<std::string> symlink_target = {};
  std::map<std::string, std::string> metadata = {};  // What its upload said of it.
};

FileResult<Entry> stat_entry(const std::string& path, const Users& users);
std::string permissions_text(EntryKind kind, std::uint32_t mode);

// Kept in one extended attribute, replaced as a whole; a filesystem without them keeps none.
inline constexpr std::size_t kMetadataBytesMax = 4096;
void set_metadata(int fd, const std::map<std::string, std::string>& metadata);

}  // namespace executor
