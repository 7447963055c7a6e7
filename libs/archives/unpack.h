#pragma once

#include <sys/types.h>

#include <ctime>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "libs/archives/compression.h"
#include "libs/archives/pack.h"
#include "libs/archives/report.h"
#include "libs/base/fd.h"

namespace archives {

struct UnpackOptions {
  // Names, at any depth, that are left out with all below them.
  std::function<bool(const std::string& name)> leaves_out = [](const std::string&) {
    return false;
  };
  bool replace = true;   // A file or link may take the place of one that is there.
  bool set_ids = false;  // Set-id and sticky bits are kept.
  // Symbolic links that lead out of the tree are made too. None is ever followed.
  bool outward_links = true;
  bool fresh = false;  // The folder is new: all that is in it comes from this archive.
  mode_t umask = 022;  // For folders of which the archive says nothing.
  std::uint64_t entries_max = kEntriesMax;
  std::uint64_t bytes_max = 64ull << 30;  // Of files, and of the archive when it is decompressed.
  // So many bytes more are about to be written.
  std::function<Result<base::Done>(std::uint64_t bytes)> take_room = [](std::uint64_t) {
    return Result<base::Done>(base::Done{});
  };
};

struct Attributes {
  mode_t mode = 0;
  std::timespec modified = {};
};

struct Unpacked {
  std::optional<Attributes> top;  // What the archive says of the top itself; not applied.
  std::string trailer;            // What was told behind the archive.
};

// Unpacks a compressed tar archive into the open folder `into`. Nothing outside of it is read or
// changed, whatever the archive says: every way there is walked through folders alone, links are
// replaced and not followed, and a path that goes back, or is absolute, ends it. Files and links
// are made in the open folder `aside`, on the same filesystem, and then take their place whole. A
// folder that is there stays as it is; one that the archive has gets its mode and time when the
// archive goes on elsewhere. When it fails, what was unpacked so far is there, and in
// `report`. Blocks, and stays on one thread.
Result<Unpacked> unpack(const Source& source, const base::Fd& into, const base::Fd& aside,
                        const UnpackOptions& options, Report& report, const std::stop_token& stop);

}  // namespace archives
