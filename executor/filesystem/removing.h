#pragma once

#include <cstdint>
#include <limits>
#include <stop_token>
#include <string>

#include "executor/filesystem/failure.h"
#include "libs/base/fd.h"

namespace executor {

inline constexpr std::size_t kRemoveDepthMax = 512;

// One pass of a removal: at most `entries_max` go, those deep in the tree first.
struct Removed {
  std::uint64_t entries = 0;
  bool all = false;  // Else there is more to do.
};
struct RemoveHow {
  bool recursive = false;  // Else a folder goes only when it is empty: kIoError.
  // Folders that may not be changed are made so; for what is our own.
  bool overrules_modes = false;
  std::uint64_t entries_max = std::numeric_limits<std::uint64_t>::max();
};
inline constexpr RemoveHow kRemoveOurOwn{.recursive = true, .overrules_modes = true};
// Takes `name` out of an open folder. An entry that goes by itself meanwhile does not matter;
// kNotFound when `name` was not there from the first. Blocks.
FsResult<Removed> remove_some(const base::Fd& folder, const std::string& name,
                              const std::string& path, const RemoveHow& how,
                              const std::stop_token& abort);

}  // namespace executor
