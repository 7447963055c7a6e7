#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "libs/archives/compression.h"
#include "libs/archives/report.h"
#include "libs/base/fd.h"

namespace archives {

inline constexpr std::uint64_t kEntriesMax = 1'000'000;

struct PackOptions {
  // Names, at any depth, that are left out with all below them.
  std::function<bool(const std::string& name)> leaves_out = [](const std::string&) {
    return false;
  };
  int level = kLevelUsual;
  std::uint64_t entries_max = kEntriesMax;
};

// Writes an open folder as a compressed tar archive: first itself, as "./", then what it holds, a
// folder before its content. No link is followed; memory does not grow with the tree, but for the
// names of files that have several (at most kHardLinksMax). What cannot be read, or changes
// meanwhile, is told and does not end it. Blocks, and stays on one thread.
inline constexpr std::size_t kHardLinksMax = 65'536;
Result<Report> pack(const base::Fd& folder, const PackOptions& options, const Sink& sink,
                    const std::stop_token& stop);

}  // namespace archives
