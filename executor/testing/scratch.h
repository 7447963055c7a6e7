#pragma once

#include <cassert>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "libs/base/files.h"

namespace executor {

// A folder of its own for one test, gone with it.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "executor-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  void write(std::string_view name, std::string_view content) const {
    const auto wrote = base::write_file_atomically(path_ / name, content, 0644);
    if (!wrote) std::abort();
  }
  std::string read(std::string_view name) const {
    auto content = base::read_file(path_ / name);
    return content ? *content : "<" + content.error().message + ">";
  }

 private:
  std::filesystem::path path_;
};

}  // namespace executor
