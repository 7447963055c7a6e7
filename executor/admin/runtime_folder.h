#pragma once

#include <filesystem>
#include <string>

#include "executor/admin/marker.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace executor {

// The executor's private folder, and what in it survives a restart.
class RuntimeFolder {
 public:
  // kInvalid: not a real folder (a link is none), not 0700, or not ours. kConflict: another
  // executor holds its lock, which this one keeps while it lives.
  static base::Result<RuntimeFolder> open(const std::filesystem::path& path);

  // Whether an executor holds its lock now; false as well when that cannot be seen.
  static bool is_taken(const std::filesystem::path& path);

  base::Result<Marker> open_marker() const { return Marker::open(path_ / "marker"); }
  // Another one for each folder that is there: whoever holds its lock owns what is named by it.
  const std::string& id() const { return id_; }

 private:
  RuntimeFolder(std::filesystem::path path, std::string id, base::Fd lock)
      : path_(std::move(path)), id_(std::move(id)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  std::string id_;
  base::Fd lock_;
};

}  // namespace executor
