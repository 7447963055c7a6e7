#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/wire/frames/file_operations.h"

// What is asked and answered about searches, and the program that makes them: docs/protocol.md,
// "Search". Patterns and globs are text; paths are bytes.
namespace wire {

inline constexpr std::int64_t kFoundUsual = 10'000, kFoundMax = 1'000'000;
inline constexpr std::int64_t kSearchBytesUsual = 20 << 20, kSearchBytesMax = 64 << 20;
inline constexpr std::int64_t kLineBytesUsual = 2000, kLineBytesMax = 65'536;
inline constexpr std::int64_t kContextMax = 100;
inline constexpr std::size_t kSpansMax = 100;

enum class SearchOrder { kAsFound, kPath, kModified };
enum class CaseMode { kSensitive, kInsensitive, kSmart };

// Which files are looked at.
struct FileSelection {
  std::vector<std::string> globs = {};  // In order; one with ! in front leaves out.
  std::vector<std::string> types = {};  // "cpp".
  bool hidden = false;
  bool ignore_files = true;  // .gitignore and the like are heeded.
  SearchOrder order = SearchOrder::kAsFound;
  bool operator==(const FileSelection&) const = default;
};

struct SearchOk {
  std::string target;  // What paths are relative to; of a file, its folder.
  bool operator==(const SearchOk&) const = default;
};

struct GlobArgs {
  static constexpr std::string_view kOp = "fs.glob";
  using Ok = SearchOk;
  Place place;
  FileSelection files = {};
  std::int64_t found_max = kFoundUsual;
  std::int64_t bytes_max = kSearchBytesUsual;
  bool operator==(const GlobArgs&) const = default;
};

struct GrepArgs {
  static constexpr std::string_view kOp = "fs.grep";
  using Ok = SearchOk;
  Place place;
  std::string pattern;
  bool literal = false, word = false, multiline = false;
  bool binary = false;  // Files that hold NUL are searched to their end, as text.
  CaseMode case_mode = CaseMode::kSensitive;
  std::int64_t before = 0, after = 0;  // Lines around.
  FileSelection files = {};
  std::optional<std::int64_t> file_bytes_max = std::nullopt;
  std::int64_t line_bytes_max = kLineBytesUsual;
  std::int64_t found_max = kFoundUsual;
  std::int64_t bytes_max = kSearchBytesUsual;
  bool operator==(const GrepArgs&) const = default;
};

struct SearchSummary {
  std::int64_t found = 0, files = 0;
  // What ended it early: "found" or "bytes"; there may be more.
  std::optional<std::string> limit = std::nullopt;
  std::int64_t troubles = 0;  // What could not be looked at, and the first of it in words.
  std::vector<std::string> told = {};
  bool operator==(const SearchSummary&) const = default;
};

// One line of a search's download.
struct SearchLine {
  std::optional<std::string> path = std::nullopt;
  std::optional<std::int64_t> line = std::nullopt, offset = std::nullopt;
  std::optional<std::string> text = std::nullopt;  // Any bytes, without the newline at the end.
  bool context = false, cut = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans = {};  // From, to; in `text`.
  std::optional<SearchSummary> summary = std::nullopt;            // The last line, and alone.
  bool operator==(const SearchLine&) const = default;
};

struct FindToolArgs {
  static constexpr std::string_view kOp = "tool.find";
  struct Ok {
    std::string sha256;
    std::int64_t bytes = 0;
    std::optional<std::string> path = std::nullopt;  // Where it is, if it is.
    bool operator==(const Ok&) const = default;
  };
  std::string name;
  bool operator==(const FindToolArgs&) const = default;
};

struct PutToolArgs {
  static constexpr std::string_view kOp = "tool.put";
  struct Ok {
    std::string path;
    bool operator==(const Ok&) const = default;
  };
  std::string name, sha256;
  bool operator==(const PutToolArgs&) const = default;
};

}  // namespace wire
