#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/wire/frames/file_operations.h"

// What is asked and answered about archives: docs/protocol.md, "Archives".
namespace wire {

inline constexpr std::int64_t kArchiveLevelUsual = 3, kArchiveLevelMax = 9;
inline constexpr std::int64_t kArchiveBytesMax = std::int64_t{64} << 30;  // Of files, unpacked.
inline constexpr std::size_t kRemarksMax = 100;

// What of the tree is not in the archive as it was, or the other way around.
struct ArchiveRemark {
  std::string path;
  std::string remark;  // "changed".
  bool operator==(const ArchiveRemark&) const = default;
};

// Behind an archive (archives::trailer_frame), and in the reply about one that was unpacked.
struct ArchiveReport {
  std::int64_t entries = 0, files = 0, bytes = 0;
  std::int64_t remarks = 0;  // Those that are not told too.
  std::vector<ArchiveRemark> told = {};
  bool operator==(const ArchiveReport&) const = default;
};

struct CreateArchiveArgs {
  static constexpr std::string_view kOp = "archive.create";
  struct Ok {
    std::string target;
    bool operator==(const Ok&) const = default;
  };
  Place place;
  std::vector<std::string> excludes = {};
  std::int64_t level = kArchiveLevelUsual;
  bool operator==(const CreateArchiveArgs&) const = default;
};

struct ExtractArchiveArgs {
  static constexpr std::string_view kOp = "archive.extract";
  struct Ok {
    bool created = false;
    std::string target;
    ArchiveReport report = {};
    bool operator==(const Ok&) const = default;
  };
  Place place;
  std::vector<std::string> excludes = {};
  bool replace = true, set_ids = false, durable = false;
  std::int64_t bytes_max = kArchiveBytesMax;
  bool operator==(const ExtractArchiveArgs&) const = default;
};

}  // namespace wire
