#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "libs/base/folder.h"
#include "libs/base/kernel_files.h"
#include "libs/base/testing/eventually.h"

namespace base {

// A cgroup2 folder of its own for one test; `path` is empty where the machine has none to give.
// What is in it ends with it.
class TemporaryCgroup {
 public:
  TemporaryCgroup() {
    for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      path_ = std::filesystem::path(mount) / ("sandfleet-test-" + std::to_string(::getpid()));
      if (::mkdir(path_.c_str(), 0755) != 0) continue;
      if (std::filesystem::exists(path_ / "cgroup.kill")) return;
      ::rmdir(path_.c_str());
    }
    path_.clear();
  }
  ~TemporaryCgroup() {
    if (path_.empty()) return;
    static_cast<void>(write_setting(path_ / "cgroup.kill", "1"));
    eventually([this] { return removed(path_); });
  }
  TemporaryCgroup(const TemporaryCgroup&) = delete;
  TemporaryCgroup& operator=(const TemporaryCgroup&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Whether no group is in it.
  bool empty() const {
    for (const auto& entry : entries_of(path_))
      if (std::filesystem::is_directory(entry)) return false;
    return true;
  }

 private:
  static bool removed(const std::filesystem::path& group) {
    for (const auto& entry : entries_of(group))
      if (std::filesystem::is_directory(entry)) removed(entry);
    return ::rmdir(group.c_str()) == 0;
  }

  std::filesystem::path path_;
};

}  // namespace base
