#pragma once

#include <filesystem>
#include <optional>

#include "libs/base/fd.h"
#include "libs/base/result.h"
#include "libs/wire/admin.h"

namespace executor {

// The executor's private folder, and what in it survives a restart.
class RuntimeFolder {
 public:
  // kInvalid: not a real folder (a link is none), not 0700, or not ours. kConflict: another
  // executor holds its lock, which this one keeps while it lives.
  static base::Result<RuntimeFolder> open(const std::filesystem::path& path);

  // What `resumed` last said here; nothing when it never did. kInvalid: it cannot be read.
  base::Result<std::optional<wire::Identity>> read_marker() const;
  base::Result<base::Done> write_marker(const wire::Identity& identity) const;  // Fsynced.

 private:
  RuntimeFolder(std::filesystem::path path, base::Fd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  base::Fd lock_;
};

}  // namespace executor
