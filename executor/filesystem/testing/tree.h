#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "executor/confine/permission.h"
#include "executor/files/staging.h"
#include "executor/filesystem/identity.h"
#include "executor/filesystem/stagings.h"
#include "executor/testing/scratch.h"
#include "libs/base/testing/temporary_folder.h"

namespace executor {

inline const Permission kFull{PermissionMode::kDangerFullAccess, {}};

// Files of one test, and the stagings of an executor beside them.
class Tree : public Scratch {
 public:
  Tree() : stagings(reopened()) {}

  // As the next executor would find things.
  std::shared_ptr<Stagings> reopened(Stagings::Limits limits = {}) const {
    return *Stagings::open(runtime_.path(), limits);
  }
  const std::filesystem::path& runtime() const { return runtime_.path(); }

  void make_folder(std::string_view name) const {
    std::filesystem::create_directories(path() / name);
  }
  void link(std::string_view name, const std::string& target) const {
    std::filesystem::create_symlink(target, path() / name);
  }
  FileAddress at(std::string_view name) const {
    return FileAddress::of_path(std::string(name), path().string());
  }
  mode_t mode(std::string_view name) const {
    struct stat found{};
    return ::lstat((path() / name).c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
  }
  // All that stands in the tree, by its relative path, in order; stagings too.
  std::vector<std::string> everything() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path()))
      names.push_back(entry.path().lexically_relative(path()).string());
    std::sort(names.begin(), names.end());
    return names;
  }
  // What is left of writes that did not end.
  std::size_t leftovers() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path()))
      if (entry.path().filename().string().starts_with(kPrivateStagingPrefix)) ++count;
    return count;
  }

 private:
  base::TemporaryFolder runtime_;

 public:
  std::shared_ptr<Stagings> stagings;
};

// Runs `deed` in a process of its own, which is to end there with _exit(kAbruptEnd): as in a crash,
// nothing is cleaned up.
inline constexpr int kAbruptEnd = 77;
bool ends_abruptly(const std::function<void()>& deed);

// "" when it went well.
template <typename Result>
std::string code_of(const Result& result) {
  return result ? "" : std::string(to_word(result.error().fs));
}

}  // namespace executor
