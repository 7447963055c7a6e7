#pragma once

#include <map>
#include <mutex>
#include <string>

#include "controller/reconcile/packing.h"

namespace controller {

// What this process remembers, by the UID of the Sandbox. Bounded by the number of Sandboxes:
// whoever removes a finalizer forgets. Kept packed: each costs a few hundred bytes, and a look at
// it about a microsecond.
class Memories {
 public:
  Memory recall(const std::string& uid) const {
    std::lock_guard lock(mutex_);
    const auto found = packed_.find(uid);
    return found == packed_.end() ? Memory{} : unpack(found->second);
  }
  template <typename Change>
  void update(const std::string& uid, Change change) {
    std::lock_guard lock(mutex_);
    std::string& packed = packed_[uid];
    Memory memory = packed.empty() ? Memory{} : unpack(packed);
    change(memory);
    packed = pack(memory);
  }
  void forget(const std::string& uid) {
    std::lock_guard lock(mutex_);
    packed_.erase(uid);
  }
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return packed_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> packed_;
};

}  // namespace controller
