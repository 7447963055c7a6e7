#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "libs/base/files.h"

namespace manifests {

// Every change that the store makes on disk, so that a test can let a process die before any one.
class Disk {
 public:
  using Gate = std::function<base::Result<base::Done>(const std::filesystem::path&)>;
  explicit Disk(Gate before_change = {}) : before_change_(std::move(before_change)) {}

  base::Result<base::Done> write(const std::filesystem::path& path, std::string_view content,
                                 mode_t mode) const;
  // Gone for good when it returns; a path that is not there is no error.
  base::Result<base::Done> remove(const std::filesystem::path& path) const;
  // Adds to the end, in one write; `durable`: synced before it returns.
  base::Result<base::Done> append(const std::filesystem::path& path, std::string_view lines,
                                  mode_t mode, bool durable) const;
  base::Result<base::Done> make_folders(const std::filesystem::path& path) const;  // 0700

 private:
  Gate before_change_;
};

}  // namespace manifests
