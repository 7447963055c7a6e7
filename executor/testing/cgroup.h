#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace executor {

// A cgroup2 folder of this test's own, where the machine has one to give.
struct Cgroup {
  std::filesystem::path path;
  Cgroup() {
    for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      path = std::filesystem::path(mount) / ("sandfleet-test-" + std::to_string(::getpid()));
      if (::mkdir(path.c_str(), 0755) != 0) continue;
      if (std::filesystem::exists(path / "cgroup.kill")) return;
      ::rmdir(path.c_str());
    }
    path.clear();
  }
  ~Cgroup() { ::rmdir(path.c_str()); }
  bool empty() const {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.is_directory()) return false;
    return true;
  }
};

}  // namespace executor
