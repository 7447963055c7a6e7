#include "cli/copy/aside.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "libs/base/crypto.h"
#include "libs/base/files.h"

namespace cli {

namespace fs = std::filesystem;

base::Result<Aside> Aside::in(const fs::path& folder) {
  Aside made;
  made.path_ = folder / (".sandfleet-" + base::random_hex(8));
  if (::mkdir(made.path_.c_str(), 0700) != 0)
    return base::errno_error("make a folder in", folder, errno);
  return made;
}

Aside::Aside(Aside&& other) noexcept : path_(std::exchange(other.path_, {})) {}

Aside::~Aside() {
  if (path_.empty()) return;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(path_, ignored))
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored))
      fs::permissions(entry.path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  fs::remove_all(path_, ignored);
}

}  // namespace cli
