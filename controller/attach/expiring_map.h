#pragma once

#include <map>
#include <optional>
#include <utility>

#include "libs/base/clock.h"

namespace controller {

// What is worth remembering for a while, for `entries_max` keys: beyond, whatever would be
// forgotten first makes room.
template <typename Key, typename Value>
class ExpiringMap {
 public:
  explicit ExpiringMap(std::size_t entries_max) : entries_max_(entries_max) {}

  std::optional<Value> find(const Key& key, base::Moment now) const {
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.until <= now) return std::nullopt;
    return found->second.value;
  }

  void put(const Key& key, Value value, base::Moment until) {
    if (const auto old = entries_.find(key); old != entries_.end()) erase(old);
    if (entries_.size() >= entries_max_) erase(entries_.find(by_end_.begin()->second));
    entries_.insert_or_assign(key, Entry{std::move(value), until});
    by_end_.emplace(until, key);
  }

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Value value;
    base::Moment until;
  };
  using Entries = std::map<Key, Entry>;

  void erase(typename Entries::iterator entry) {
    const auto [begin, end] = by_end_.equal_range(entry->second.until);
    for (auto each = begin; each != end; ++each) {
      if (each->second != entry->first) continue;
      by_end_.erase(each);
      break;
    }
    entries_.erase(entry);
  }

  const std::size_t entries_max_;
  Entries entries_;
  std::multimap<base::Moment, Key> by_end_;
};

}  // namespace controller
