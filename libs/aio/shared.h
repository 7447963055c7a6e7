#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "libs/aio/loop.h"

namespace aio {

// Work that those who want the same at the same time share: it is begun for the first of them, and
// goes on when all of them have left. Nothing is remembered beyond it. It outlives who waits.
template <typename Key, typename Value>
class Shared {
 public:
  using Begin = std::function<Task<Value>(Key)>;
  Shared(Executor executor, Begin begin)
      : executor_(executor), begin_(std::move(begin)), tasks_(std::move(executor)) {}

  // What is under way.
  std::size_t size() const { return under_way_.size(); }
  bool contains(const Key& key) const { return under_way_.contains(key); }

  Task<Value> get(Key key) {
    const auto known = under_way_.find(key);
    auto one = known == under_way_.end() ? nullptr : known->second;
    if (!one) {
      one = under_way_.emplace(key, std::make_shared<One>(executor_)).first->second;
      tasks_.spawn(work(std::move(key), one));
    }
    while (!one->value) co_await one->done.wait();
    co_return *one->value;
  }

 private:
  struct One {
    explicit One(Executor executor) : done(std::move(executor)) {}
    std::optional<Value> value;
    Condition done;
  };

  Task<> work(Key key, std::shared_ptr<One> one) {
    one->value.emplace(co_await begin_(key));
    under_way_.erase(key);
    one->done.notify_all();
  }

  const Executor executor_;
  const Begin begin_;
  std::map<Key, std::shared_ptr<One>> under_way_;
  TaskGroup tasks_;  // Last: they use all of the above.
};

}  // namespace aio
