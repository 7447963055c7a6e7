#pragma once

#include <string>
#include <string_view>

#include "executor/filesystem/failure.h"

// How callers name files: by paths, which are resolved, and by targets, which name one place for
// good. A path is any bytes but NUL.
namespace executor {

struct Target {
  // Absolute, without a link on the way: the same for all aliases of one file, and the same before
  // and after it is created.
  std::string key;
  std::string display;  // The absolute path as it was spelled; links are not resolved.
  bool operator==(const Target&) const = default;
};

// A path, absolute or by `cwd`, or the key of a target.
struct FileAddress {
  static FileAddress of_path(std::string path, std::string cwd) {
    return {std::move(path), std::move(cwd), false};
  }
  static FileAddress of_target(std::string key) { return {std::move(key), {}, true}; }

  std::string path, cwd;
  bool is_target = false;
};

// Absolute and clean, nothing looked up. kNotFound for a path that is blank or holds NUL.
FsResult<std::string> absolute_path(const FileAddress& address);

// Where an absolute, clean path leads, links followed, also to what is not there yet. kNotFound
// below something that is no folder. Blocks.
FsResult<std::string> canonical_path(const std::string& absolute);

// What the last name leads to; a target is taken as it is. Blocks.
FsResult<Target> locate(const FileAddress& address);
// The last name itself, be it a link. Blocks.
FsResult<Target> locate_entry(const FileAddress& address);

std::string process_path(const Target& target);  // For programs in the sandbox.
std::string file_url(const Target& target);
bool contains(const Target& parent, const Target& child);

}  // namespace executor
