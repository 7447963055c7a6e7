#pragma once

#include <optional>
#include <string>

#include "executor/filesystem/failure.h"
#include "executor/filesystem/identity.h"
#include "executor/filesystem/version.h"

namespace executor {

// What the address leads to; nothing when that is absent, or below something that is no folder. A
// target in whose way a link has come is kIoError. Blocks.
FsResult<std::optional<FileInfo>> stat_target(const FileAddress& address);

struct EntryInfo {
  FileInfo info;
  std::optional<std::string> link_target = {};  // As the link spells it.
};
// The last name itself. Blocks.
FsResult<std::optional<EntryInfo>> stat_entry(const FileAddress& address);

}  // namespace executor
