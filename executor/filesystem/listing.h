#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "executor/filesystem/failure.h"
#include "executor/filesystem/version.h"

// What a folder holds, page by page, by the bytes of the names. A page takes memory for itself
// alone, however large the folder. What is on its way to its place is not listed. All of it blocks.
namespace executor {

inline constexpr std::size_t kPageEntriesMax = 1000;
inline constexpr std::size_t kTreeDepthMax = 128;

struct ListedEntry {
  std::string name;    // In a tree: the path below its top.
  std::string target;  // Its key, links followed but in a tree.
  // In a folder, of what a link leads to; kOther where that leads nowhere, or what was just there
  // is gone.
  EntryKind kind = EntryKind::kOther;
  std::optional<std::string> version = {};
  std::optional<std::uint64_t> size = {};  // Of files.
};

struct Page {
  std::vector<ListedEntry> entries;
  bool more = false;  // Ask again after the last one.
};

// One level. kNotFound; kNotDirectory; what fails with an entry fails the whole.
FsResult<Page> list_directory(const std::string& key, const std::string& after,
                              std::size_t entries_max, const std::stop_token& abort);

struct TreeRequest {
  std::string after;  // The path of the last page's last entry.
  std::size_t entries_max = kPageEntriesMax;
  std::size_t depth_max = kTreeDepthMax;
  std::vector<std::string> excludes;  // Names that are left out, with all below them.
};
// A folder before what it holds; links are shown and not followed. kPermissionDenied where a folder
// below cannot be read: leave it out by its name.
FsResult<Page> list_tree(const std::string& key, const TreeRequest& request,
                         const std::stop_token& abort);

}  // namespace executor
