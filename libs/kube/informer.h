#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libs/base/log.h"
#include "libs/kube/own_writes.h"
#include "libs/kube/reflector.h"
#include "libs/kube/store.h"

namespace kube {

// A collection in memory, as the server has it but for a moment: a reflector and its store. What
// cannot be read keeps its last readable version.
template <typename T>
class Informer final : private Mirror {
 public:
  using Read = std::function<base::Result<T>(const base::Json&)>;

  Informer(Client& client, const base::Clock& clock, Resource resource, Scope scope, Read read,
           ReflectorSettings settings = {})
      : plural_(resource.plural),
        read_(std::move(read)),
        reflector_(client, clock, std::move(resource), std::move(scope), *this,
                   std::move(settings)) {}

  Store<T>& store() { return store_; }
  const Store<T>& store() const { return store_; }

  // Called with each key that another hand has changed, from the informer's thread or that of a
  // write; must be short. Before start.
  void on_change(std::function<void(const api::Key&)> changed) { changed_ = std::move(changed); }
  void start() { reflector_.start(); }

  // Carries out a write of our own to an object: `send` asks the server, and the store holds what
  // came of it. The event of that write is not told, for whoever wrote it knows; what others
  // changed meanwhile is told at its end.
  template <typename Send>
  base::Result<T> write(const api::Key& key, Send send) {
    {
      std::lock_guard lock(telling_);
      own_writes_.begin(key);
    }
    base::Result<T> written = take_answer(send());
    bool others_wrote = false;
    {
      std::lock_guard lock(telling_);
      if (written) store_.put_written(std::make_shared<const T>(*written));
      others_wrote =
          own_writes_.end(key, written ? written->metadata.resource_version : std::string());
    }
    if (others_wrote) tell(key);
    return written;
  }

  // Whether the store has held a complete list.
  bool is_synced() const {
    std::lock_guard lock(mutex_);
    return synced_;
  }
  bool wait_until_synced(base::Milliseconds patience, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    return sync_.wait_for(lock, std::move(stop), patience, [&] { return synced_; });
  }
  ReflectorStats stats() const { return reflector_.stats(); }

 private:
  using Pointer = typename Store<T>::Pointer;

  void begin_list() override { listed_.clear(); }

  void list_item(base::Json object) override {
    const api::Metadata metadata = identity_of(object);
    if (auto same = store_.find_same(metadata.key, metadata.uid, metadata.resource_version)) {
      listed_.push_back(std::move(same));
      return;
    }
    if (Pointer fresh = read(object))
      listed_.push_back(std::move(fresh));
    else if (Pointer old = store_.find(metadata.key))
      listed_.push_back(std::move(old));
  }

  void complete_list(const std::string& resource_version) override {
    const auto changed = store_.replace(std::exchange(listed_, {}), resource_version);
    {
      std::lock_guard lock(mutex_);
      synced_ = true;
    }
    sync_.notify_all();
    for (const api::Key& key : changed) tell(key);
  }

  void take(WatchEvent event) override {
    const api::Metadata metadata = identity_of(event.object);
    if (event.kind == WatchEvent::Kind::kBookmark) return store_.reach(metadata.resource_version);
    if (event.kind == WatchEvent::Kind::kDeleted) {
      if (store_.remove(metadata)) tell(metadata.key);
      return;
    }
    const Pointer object = read(event.object);
    if (!object) return store_.reach(metadata.resource_version);
    bool news = false;
    {
      std::lock_guard lock(telling_);
      news = store_.put(object) && own_writes_.is_news(metadata.key, metadata.resource_version);
    }
    if (news) tell(metadata.key);
  }

  base::Result<T> take_answer(Answer<base::Json> answer) const {
    if (!answer) return base::Error(answer.error());
    make_compact(*answer);
    return read_(*answer);
  }

  Pointer read(const base::Json& object) {
    auto value = read_(object);
    if (value) return std::make_shared<const T>(*std::move(value));
    base::log::warn("An object cannot be read, its last readable version stands",
                    {{"resource", plural_},
                     {"object", to_text(identity_of(object).key)},
                     {"error", value.error()}});
    return nullptr;
  }

  void tell(const api::Key& key) {
    if (changed_) changed_(key);
  }

  const std::string plural_;
  const Read read_;
  std::function<void(const api::Key&)> changed_;
  Store<T> store_;
  std::vector<Pointer> listed_;  // Of the list that is under way.
  std::mutex telling_;           // From a change of the store until it is known whose it is.
  OwnWrites own_writes_;
  mutable std::mutex mutex_;
  std::condition_variable_any sync_;
  bool synced_ = false;
  Reflector reflector_;  // Last: its thread uses all of the above.
};

}  // namespace kube
