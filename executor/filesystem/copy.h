#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "executor/confine/permission.h"
#include "executor/filesystem/failure.h"
#include "executor/filesystem/stagings.h"

namespace executor {

inline constexpr std::uint64_t kCopiedEntriesMax = 1'000'000;
struct CopyRequest {
  Permission permission;
  bool recursive = false;  // Else a folder is kNotRegularFile.
  bool replace = true;     // A file may take another's place; a folder takes nobody's.
  bool durable = false;
  std::uint64_t entries_max = kCopiedEntriesMax;
};
struct Copied {
  std::uint64_t files = 0, bytes = 0;
};
inline constexpr std::size_t kCopyDepthMax = 256;
// The copy appears as a whole, in a folder that is there. Modes are kept, but a file that is
// replaced gives its own on; links stay links. kNotRegularFile for anything but files, folders and
// links; kNotObserved for what stands in the way. Keys are those of locate_entry(). Blocks.
FsResult<Copied> copy_to(Stagings& stagings, const std::string& from, const std::string& to,
                         const CopyRequest& request, const std::stop_token& abort);

}  // namespace executor
