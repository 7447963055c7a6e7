#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "libs/api/sandbox.h"
#include "libs/manifests/state_reader.h"
#include "libs/manifests/watcher.h"

namespace manifests {

// Follows the Sandboxes on record in a state folder, beside the controller that owns it. Only what
// changed is read again.
class StateFollower {
 public:
  struct News {
    // Since the last time; null where one is no more.
    std::map<api::Key, std::shared_ptr<const api::Sandbox>> changed = {};
    bool held = false;  // A controller is at work there: what is on record holds.
  };
  // `tell` is called once there is news, from a thread of the follower, until it is destroyed.
  StateFollower(std::filesystem::path state, std::function<void(const News&)> tell);

 private:
  struct Seen {
    dev_t device = 0;
    ino_t inode = 0;
    std::int64_t changed_ns = 0;
    std::shared_ptr<const api::Sandbox> sandbox = {};
  };
  using Files = std::map<std::filesystem::path, Seen>;

  base::Milliseconds look();
  Files files_now() const;
  void compare(Files now, News& news);

  const std::filesystem::path state_;
  const std::function<void(const News&)> tell_;
  const StateReader reader_;
  Files files_;
  bool told_held_ = false;
  Watcher watcher_;  // Last: its thread uses all of the above.
};

}  // namespace manifests
