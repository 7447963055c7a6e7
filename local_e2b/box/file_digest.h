#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "libs/base/result.h"

namespace local_e2b {

// The SHA-256 of a file, read again only when the file is another than before. For many threads.
class FileDigest {
 public:
  base::Result<std::string> of(const std::filesystem::path& file);  // In hexadecimal.

 private:
  struct Version {
    std::filesystem::path file;
    dev_t device = 0;
    ino_t number = 0;
    off_t size = 0;
    std::int64_t written_ns = 0, changed_ns = 0;
    bool operator==(const Version&) const = default;
  };

  std::mutex mutex_;
  std::optional<Version> known_;
  std::string digest_;
};

}  // namespace local_e2b
