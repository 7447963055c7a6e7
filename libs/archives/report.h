#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace archives {

// What an archive has not as it is on disk, or the disk not as it is in the archive.
enum class Remark {
  kSpecial,      // A device, pipe or socket: left out.
  kUnreadable,   // Left out; what of a file could be read before is there, and zeros then.
  kChanged,      // It changed while it was read; its size is the one of when it was begun.
  kTooDeep,      // Left out, with all below.
  kLinkMissing,  // A hard link to what is not there: left out.
  kLinkOutward,  // A symbolic link that leads out of the tree: left out where that is asked for.
};
std::string_view to_word(Remark remark);

struct Remarked {
  std::string path;
  Remark remark;
  bool operator==(const Remarked&) const = default;
};

// What went into an archive, or came out of one.
struct Report {
  // Of those that are told; `remarks` counts the others too.
  static constexpr std::size_t kToldMax = 100;
  static constexpr std::size_t kToldBytesMax = 16u << 10;

  std::uint64_t entries = 0, files = 0;
  std::uint64_t bytes = 0;  // Of files, holes included.
  std::uint64_t remarks = 0;
  std::vector<Remarked> told = {};

  void add(std::string path, Remark remark);
};

}  // namespace archives
