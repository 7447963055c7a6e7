#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/fd.h"

namespace manifests {

// Calls `look` when one of the folders changes, when wake() is called, and at the latest after the
// time that `look` gave back; from one thread, until destroyed. Folders that come and go are found
// again.
class Watcher {
 public:
  using Folders = std::function<std::vector<std::filesystem::path>()>;
  Watcher(std::vector<std::filesystem::path> folders, std::function<base::Milliseconds()> look);
  // The same where it depends which folders those are; asked before each look.
  Watcher(Folders folders, std::function<base::Milliseconds()> look);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  void start();  // Once.
  void stop();   // Returns when nobody looks any more.
  void wake() const;

 private:
  void run(const std::stop_token& stop);
  void wait(base::Milliseconds at_most) const;
  bool next_is_step(base::Milliseconds at_most) const;

  const Folders folders_;
  const std::function<base::Milliseconds()> look_;
  base::Fd changes_, bell_;
  std::jthread thread_;
};

}  // namespace manifests
