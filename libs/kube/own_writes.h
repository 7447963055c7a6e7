#pragma once

#include <map>
#include <set>
#include <string>

#include "libs/api/sandbox.h"

namespace kube {

// Which changes of an object are our own doing. An event may come before the answer to the write
// that caused it, and then only that answer tells whose it is: until our writes to an object have
// ended, its events are noted, not told. Not to be shared between threads without a lock.
class OwnWrites {
 public:
  void begin(const api::Key& key) { ++objects_[key].under_way; }

  // An event has brought the object to `version`. False: whether that is news is told by end().
  bool is_news(const api::Key& key, const std::string& version) {
    const auto found = objects_.find(key);
    if (found == objects_.end()) return true;
    found->second.seen.insert(version);
    return false;
  }

  // One write has brought the object to `version`; empty: nobody knows of any. True: it was the
  // last one under way, and events brought versions that none of them made.
  bool end(const api::Key& key, const std::string& version) {
    const auto found = objects_.find(key);
    Written& written = found->second;
    written.made.insert(version);
    if (--written.under_way > 0) return false;
    bool others = false;
    for (const std::string& each : written.seen) others = others || !written.made.contains(each);
    objects_.erase(found);
    return others;
  }

 private:
  struct Written {
    int under_way = 0;
    std::set<std::string> seen = {}, made = {};  // Versions.
  };
  std::map<api::Key, Written> objects_;  // As many as are being written.
};

}  // namespace kube
