#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace base {

// A folder of its own for one test, gone with it; in memory where there is such a place, because
// tests make thousands of durable writes.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& parent = in_memory()) {
    std::string name = (parent / "sandfleet-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  static std::filesystem::path in_memory() {
    std::error_code ignored;
    const bool memory = std::filesystem::is_directory("/dev/shm", ignored) && !::getenv("TMPDIR");
    return memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

}  // namespace base
