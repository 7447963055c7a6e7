#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libs/base/result.h"

namespace cli {

// Bytes of an output, and where they begin.
struct Block {
  std::int64_t from = 0;
  std::string bytes = {};

  std::int64_t end() const { return from + static_cast<std::int64_t>(bytes.size()); }
  bool operator==(const Block&) const = default;
};

// Reads up to so many from there on; where that is not kept any more they begin behind it.
using ReadBlock = std::function<base::Result<Block>(std::int64_t from, std::int64_t bytes)>;

// The last lines of what grows while it is read, of which only the end is kept: of what the first
// reading found, so that whoever goes on from the end of it misses nothing. `known`: how much there
// was before. Fewer than were asked for: the ones before are not kept.
struct LastLines {
  Block block;
  bool all = true;
};
base::Result<LastLines> last_lines_of_kept(const ReadBlock& read, std::int64_t known,
                                           std::int64_t lines);

// Where they begin in a file of that size.
base::Result<std::int64_t> last_lines_in_file(const ReadBlock& read, std::int64_t size,
                                              std::int64_t lines);

}  // namespace cli
