#pragma once

#include <cstddef>
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
  // `at_most`: under way at once.
  Shared(Executor executor, std::size_t at_most, Begin begin)
      : executor_(executor),
        at_most_(at_most),
        begin_(std::move(begin)),
        tasks_(std::move(executor)) {}

  bool idle() const { return tasks_.size() == 0; }  // Nothing is under way.

  // Nothing: so much else is under way that this was not begun.
  Task<std::optional<Value>> get(Key key) {
    const auto known = under_way_.find(key);
    auto one = known == under_way_.end() ? nullptr : known->second;
    if (!one) {
      if (under_way_.size() >= at_most_) co_return std::nullopt;
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
  const std::size_t at_most_;
  const Begin begin_;
  std::map<Key, std::shared_ptr<One>> under_way_;
  TaskGroup tasks_;  // Last: they use all of the above.
};

}  // namespace aio
