#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

namespace executor {

// Files of one test, on a filesystem like those of sandboxes.
class Scratch {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  std::string operator/(std::string_view name) const { return (path() / name).string(); }
  void write(std::string_view name, std::string_view content) const {
    const auto wrote = base::write_file_atomically(path() / name, content, 0644);
    if (!wrote) std::abort();
  }
  std::string read(std::string_view name) const {
    auto content = base::read_file(path() / name);
    return content ? *content : "<" + content.error().message + ">";
  }

 private:
  base::TemporaryFolder folder_{std::filesystem::temp_directory_path()};
};

}  // namespace executor
