#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "libs/aio/loop.h"
#include "libs/aio/task.h"

namespace executor {

// Whose turn it is to change something, by a key: first come, first served, whoever the clients
// are. On the loop only; it outlives its places.
class Turns {
 public:
  static constexpr std::size_t kWaitingMax = 64;  // For one key, with the one whose turn it is.
  static constexpr std::size_t kWaitingInAllMax = 1024;

  // A place in the line; left when it goes.
  class Place {
   public:
    Place(Place&& other) noexcept = default;
    Place& operator=(Place&& other) noexcept;
    ~Place();

    // True when it is this one's turn, which lasts as long as the place; false when a stop was
    // asked for, on the loop, before that.
    aio::Task<bool> wait(std::stop_token stop);

   private:
    friend class Turns;
    struct Waiter;
    Place(Turns& turns, std::string key, std::shared_ptr<Waiter> waiter);
    void leave();

    Turns* turns_;
    std::string key_;
    std::shared_ptr<Waiter> waiter_;  // Empty when moved from.
  };

  explicit Turns(aio::Executor executor) : executor_(std::move(executor)) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Nothing when too many wait already.
  std::optional<Place> join(const std::string& key);
  std::size_t waiting() const { return waiting_; }

 private:
  aio::Executor executor_;
  std::map<std::string, std::list<std::shared_ptr<Place::Waiter>>> lines_;
  std::size_t waiting_ = 0;
};

}  // namespace executor
