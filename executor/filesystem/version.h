#pragma once

#include <cstdint>
#include <string>

#include "executor/files/entry.h"
#include "executor/files/file_error.h"
#include "libs/base/fd.h"

namespace executor {

// What is known of something in the tree without reading its content.
struct FileInfo {
  EntryKind kind = EntryKind::kOther;
  // Another one after each change of its content, whoever made it. For callers it is but a text to
  // hand back; at most kVersionBytesMax long.
  std::string version;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;  // The nine permission bits.
  std::int64_t modified_ms = 0;
};
inline constexpr std::size_t kVersionBytesMax = 128;

// Of an open descriptor, O_PATH or not. `path` is for the message.
FileResult<FileInfo> look_at(const base::Fd& place, const std::string& path);

}  // namespace executor
