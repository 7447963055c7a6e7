#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "libs/api/sandbox.h"
#include "libs/kube/watch.h"

namespace kube {

// The objects of a collection as far as its events have come, never older than what this process
// itself has written. T has `api::Metadata metadata`. Objects are shared and never change. Safe to
// share between threads.
template <typename T>
class Store {
 public:
  using Pointer = std::shared_ptr<const T>;
  using Value = const std::string& (*)(const T&);  // A part of the object.

  // Makes objects findable by what `value` says of them. Before the first object.
  void add_index(const std::string& name, Value value) {
    indexes_.emplace(name, Index(ByValue{value}));
  }

  Pointer find(const api::Key& key) const {
    std::shared_lock lock(mutex_);
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : *found;
  }
  std::vector<Pointer> all() const {
    std::shared_lock lock(mutex_);
    return {objects_.begin(), objects_.end()};
  }
  // In the order of their keys.
  std::vector<Pointer> find_by(const std::string& index, const std::string& value) const {
    std::shared_lock lock(mutex_);
    const auto [begin, end] = indexes_.at(index).equal_range(value);
    return {begin, end};
  }
  std::size_t size() const {
    std::shared_lock lock(mutex_);
    return objects_.size();
  }

  // --- What the mirror of a server does; each gives back the keys that are no longer as they were.

  // A complete list as of `version`. What we wrote after it stays.
  std::vector<api::Key> replace(const std::vector<Pointer>& listed, const std::string& version) {
    std::unique_lock lock(mutex_);
    // A server that is behind us was restored from a backup: then it is right, and we are wrong.
    const bool restored = is_older(version, seen_) == true;
    const auto is_written_later = [&](const Pointer& object) {
      return !restored && is_older(version, object->metadata.resource_version) == true;
    };
    Objects fresh(listed.begin(), listed.end());
    std::vector<api::Key> changed;
    for (const Pointer& old : Objects(objects_)) {
      const auto found = fresh.find(old->metadata.key);
      if (is_written_later(old)) {
        if (found != fresh.end()) fresh.erase(found);
        fresh.insert(old);
      } else if (found == fresh.end()) {
        changed.push_back(old->metadata.key);
        erase(old);
      }
    }
    for (const Pointer& object : fresh)
      if (set(object)) changed.push_back(object->metadata.key);
    seen_ = version;
    return changed;
  }

  // An event: the object as it was added or changed.
  bool put(const Pointer& object) {
    std::unique_lock lock(mutex_);
    seen_ = object->metadata.resource_version;
    return !is_superseded(object->metadata) && set(object);
  }
  // An event: the last state of what was deleted.
  bool remove(const api::Metadata& last) {
    std::unique_lock lock(mutex_);
    seen_ = last.resource_version;
    if (is_superseded(last)) return false;
    const auto found = objects_.find(last.key);
    if (found == objects_.end()) return false;
    erase(Pointer(*found));
    return true;
  }
  // A bookmark: nothing happened up to this version.
  void reach(const std::string& version) {
    std::unique_lock lock(mutex_);
    seen_ = version;
  }

  // What the server answered to a write of our own; its event may still be on the way.
  bool put_written(const Pointer& object) {
    std::unique_lock lock(mutex_);
    // The events have come further: what they say of it is newer, even if it is that it is gone.
    if (is_older(seen_, object->metadata.resource_version) == false) return false;
    return !is_superseded(object->metadata) && set(object);
  }

  // The object of that identity and version, if it is here: it need not be read again.
  Pointer find_same(const api::Key& key, const std::string& uid, const std::string& version) const {
    const Pointer found = find(key);
    const bool same =
        found && found->metadata.uid == uid && found->metadata.resource_version == version;
    return same ? found : nullptr;
  }

 private:
  struct ByKey {
    using is_transparent = void;
    bool operator()(const Pointer& one, const Pointer& other) const {
      return one->metadata.key < other->metadata.key;
    }
    bool operator()(const Pointer& one, const api::Key& other) const {
      return one->metadata.key < other;
    }
    bool operator()(const api::Key& one, const Pointer& other) const {
      return one < other->metadata.key;
    }
  };
  using Objects = std::set<Pointer, ByKey>;
  // Objects of one value in the order of their keys. It holds no copy of what it looks at.
  struct ByValue {
    using is_transparent = void;
    Value value = nullptr;
    bool operator()(const Pointer& one, const Pointer& other) const {
      const int order = value(*one).compare(value(*other));
      return order != 0 ? order < 0 : one->metadata.key < other->metadata.key;
    }
    bool operator()(const Pointer& one, const std::string& other) const {
      return value(*one) < other;
    }
    bool operator()(const std::string& one, const Pointer& other) const {
      return one < value(*other);
    }
  };
  using Index = std::set<Pointer, ByValue>;

  bool is_superseded(const api::Metadata& news) const {
    const auto held = objects_.find(news.key);
    return held != objects_.end() &&
           is_older(news.resource_version, (*held)->metadata.resource_version) == true;
  }

  // False: it was here as it is.
  bool set(const Pointer& object) {
    const auto held = objects_.find(object->metadata.key);
    if (held != objects_.end()) {
      const api::Metadata& old = (*held)->metadata;
      if (old.uid == object->metadata.uid &&
          old.resource_version == object->metadata.resource_version)
        return false;
      erase(Pointer(*held));
    }
    objects_.insert(object);
    for (auto& [name, index] : indexes_) index.insert(object);
    return true;
  }

  void erase(const Pointer& object) {
    for (auto& [name, index] : indexes_) index.erase(object);
    objects_.erase(objects_.find(object->metadata.key));
  }

  mutable std::shared_mutex mutex_;
  Objects objects_;
  std::map<std::string, Index> indexes_;
  std::string seen_;  // How far the events have come.
};

}  // namespace kube
