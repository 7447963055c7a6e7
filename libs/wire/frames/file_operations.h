#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libs/wire/frames/fields.h"

// What is asked and answered about files: docs/protocol.md, "Files". Paths and names are bytes.
// `Ok` is what the reply to these arguments carries; what stands in its download is said there.
namespace wire {

inline constexpr std::int64_t kPageEntriesMax = 1000;
inline constexpr std::int64_t kDepthMax = 128;
inline constexpr std::int64_t kEditBytesMax = 10 << 20;  // Of the old text, and of the new one.

// Either a target, used through no link, or a path.
struct Place {
  std::optional<std::string> target = std::nullopt;
  std::optional<std::string> path = std::nullopt, cwd = std::nullopt;
  bool operator==(const Place&) const = default;
};

// A path alone: its last component itself is meant, or a target that it leads to.
struct PathPlace {
  std::string path;
  std::optional<std::string> cwd = std::nullopt;
  bool operator==(const PathPlace&) const = default;
};

enum class FileType { kFile, kDirectory, kSymlink, kOther };

struct FileInfo {
  std::string version;
  FileType type = FileType::kOther;
  std::optional<std::int64_t> size = std::nullopt;
  std::int64_t mode = 0;
  std::int64_t mtime_ms = 0;
  std::optional<std::string> link_target = std::nullopt;
  bool operator==(const FileInfo&) const = default;
};

struct ResolveArgs {
  static constexpr std::string_view kOp = "fs.resolve";
  struct Ok {
    std::string target, display_path;
    bool operator==(const Ok&) const = default;
  };
  PathPlace place;
  bool operator==(const ResolveArgs&) const = default;
};

struct StatArgs {
  static constexpr std::string_view kOp = "fs.stat";
  struct Ok {
    std::optional<FileInfo> info;  // Nothing: absent.
    bool operator==(const Ok&) const = default;
  };
  Place place;
  bool operator==(const StatArgs&) const = default;
};

struct LstatArgs {
  static constexpr std::string_view kOp = "fs.lstat";
  using Ok = StatArgs::Ok;
  PathPlace place;
  bool operator==(const LstatArgs&) const = default;
};

struct ReadOk {
  std::string version;
  std::int64_t size = 0;
  bool operator==(const ReadOk&) const = default;
};

struct ReadTextArgs {
  static constexpr std::string_view kOp = "fs.readText";
  using Ok = ReadOk;
  Place place;
  std::optional<std::int64_t> bytes_max = std::nullopt;
  bool operator==(const ReadTextArgs&) const = default;
};

struct ReadBytesArgs {
  static constexpr std::string_view kOp = "fs.readBytes";
  using Ok = ReadOk;
  Place place;
  std::optional<std::int64_t> bytes_max = std::nullopt;
  std::int64_t from = 0;
  std::optional<std::int64_t> length = std::nullopt;
  bool operator==(const ReadBytesArgs&) const = default;
};

struct DirectoryEntry {
  std::string name;
  FileType type = FileType::kOther;
  std::optional<std::string> target = std::nullopt, version = std::nullopt;
  std::optional<std::int64_t> size = std::nullopt;
  bool operator==(const DirectoryEntry&) const = default;
};

struct ListDirArgs {
  static constexpr std::string_view kOp = "fs.listDir";
  struct Ok {
    std::vector<DirectoryEntry> entries;
    bool more = false;
    bool operator==(const Ok&) const = default;
  };
  Place place;
  std::int64_t page_entries = kPageEntriesMax;
  std::optional<std::string> after = std::nullopt;
  bool operator==(const ListDirArgs&) const = default;
};

struct TreeEntry {
  std::string path;  // Relative.
  FileType type = FileType::kOther;
  std::optional<std::string> version = std::nullopt;
  std::optional<std::int64_t> size = std::nullopt;
  bool operator==(const TreeEntry&) const = default;
};

struct ListTreeArgs {
  static constexpr std::string_view kOp = "fs.listTree";
  struct Ok {
    std::vector<TreeEntry> entries;
    bool more = false;
    bool operator==(const Ok&) const = default;
  };
  Place place;
  std::int64_t page_entries = kPageEntriesMax;
  std::optional<std::string> after = std::nullopt;
  std::int64_t depth_max = kDepthMax;
  std::vector<std::string> excludes = {};
  bool operator==(const ListTreeArgs&) const = default;
};

struct CreateIfAbsent {
  bool operator==(const CreateIfAbsent&) const = default;
};
struct ReplaceIfVersion {
  std::string version;
  bool operator==(const ReplaceIfVersion&) const = default;
};
using WriteIntent = std::variant<CreateIfAbsent, ReplaceIfVersion>;

enum class WriteOperation { kCreate, kUpdate };

// How many bytes of the download are the text that was there before, or is there after.
struct TextBytes {
  std::int64_t bytes = 0;
  bool operator==(const TextBytes&) const = default;
};

struct WriteArgs {
  static constexpr std::string_view kOp = "fs.write";
  struct Ok {
    WriteOperation operation = WriteOperation::kUpdate;
    std::string version, target;
    std::optional<TextBytes> before = std::nullopt;
    bool operator==(const Ok&) const = default;
  };
  Place place;
  std::optional<std::int64_t> size = std::nullopt;
  std::optional<WriteIntent> intent = std::nullopt;
  std::optional<std::int64_t> mode = std::nullopt;
  bool durable = false;
  std::int64_t diff_bytes_max = 0;
  bool operator==(const WriteArgs&) const = default;
};

struct EditTextArgs {
  static constexpr std::string_view kOp = "fs.editText";
  struct Ok {
    std::string version, target;
    std::int64_t replacements = 0;
    std::optional<TextBytes> before = std::nullopt, after = std::nullopt;
    bool operator==(const Ok&) const = default;
  };
  Place place;
  std::int64_t old_bytes = 0;
  bool replace_all = false;
  std::optional<std::string> version = std::nullopt;
  bool durable = false;
  std::int64_t diff_bytes_max = 0;
  bool operator==(const EditTextArgs&) const = default;
};

struct MkdirArgs {
  static constexpr std::string_view kOp = "fs.mkdir";
  struct Ok {
    bool created = false;
    std::string target;
    bool operator==(const Ok&) const = default;
  };
  PathPlace place;
  bool parents = false;
  std::optional<std::int64_t> mode = std::nullopt;
  bool operator==(const MkdirArgs&) const = default;
};

struct RemoveArgs {
  static constexpr std::string_view kOp = "fs.remove";
  struct Ok {
    bool removed = false;
    bool operator==(const Ok&) const = default;
  };
  PathPlace place;
  bool recursive = false, missing_ok = false;
  bool operator==(const RemoveArgs&) const = default;
};

struct RenameArgs {
  static constexpr std::string_view kOp = "fs.rename";
  struct Ok {
    std::string target;
    bool operator==(const Ok&) const = default;
  };
  std::string from, to;
  std::optional<std::string> cwd = std::nullopt;
  bool replace = true;
  bool operator==(const RenameArgs&) const = default;
};

struct CopyArgs {
  static constexpr std::string_view kOp = "fs.copy";
  struct Ok {
    std::int64_t files = 0, bytes = 0;
    std::string target;
    bool operator==(const Ok&) const = default;
  };
  std::string from, to;
  std::optional<std::string> cwd = std::nullopt;
  bool recursive = false, replace = true, durable = false;
  bool operator==(const CopyArgs&) const = default;
};

struct WatchArgs {
  static constexpr std::string_view kOp = "fs.watch";
  struct Ok {
    bool operator==(const Ok&) const = default;
  };
  Place place;
  bool recursive = false;
  bool operator==(const WatchArgs&) const = default;
};

// A line of a watch's download: what happened to a path, or how many such lines were lost.
struct WatchLine {
  enum class Change { kCreated, kWritten, kRemoved, kRenamed, kMode };
  std::optional<Change> change = std::nullopt;
  std::optional<std::string> path = std::nullopt;
  std::optional<std::int64_t> lost = std::nullopt;
  bool operator==(const WatchLine&) const = default;
};

}  // namespace wire
