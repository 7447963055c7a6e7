#pragma once

#include <map>
#include <mutex>
#include <string>

#include "controller/reconcile/observation.h"

namespace controller {

// What this process remembers, by the UID of the Sandbox. Bounded by the number of Sandboxes:
// whoever removes a finalizer forgets.
class Memories {
 public:
  Memory recall(const std::string& uid) const {
    std::lock_guard lock(mutex_);
    const auto found = memories_.find(uid);
    return found == memories_.end() ? Memory{} : found->second;
  }
  template <typename Change>
  void update(const std::string& uid, Change change) {
    std::lock_guard lock(mutex_);
    change(memories_[uid]);
  }
  void forget(const std::string& uid) {
    std::lock_guard lock(mutex_);
    memories_.erase(uid);
  }
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return memories_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Memory> memories_;
};

}  // namespace controller
