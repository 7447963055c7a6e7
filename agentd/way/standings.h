#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "agentd/way/directory.h"
#include "libs/aio/task.h"
#include "libs/api/sandbox.h"

namespace agentd {

// By the resource alone; pure. kUnknown also while it is made, or made ready.
Standing standing_of(const api::Sandbox& sandbox);

// News of Sandboxes by their names; nothing: it is no more.
using StandingNews = std::map<api::Key, std::optional<Standing>>;

// What was last told, on the loop. While nobody is there to tell, nothing is known of any.
class Standings final : public Directory {
 public:
  explicit Standings(aio::Executor executor, std::size_t ended_max = 10'000)
      : ended_max_(ended_max), moved_(std::move(executor)) {}

  Standing standing(const wire::SandboxName& sandbox) const override;
  aio::Condition& moved() override { return moved_; }

  void take(const StandingNews& news);
  // Whether somebody tells all that happens.
  void set_heard(bool heard);

 private:
  void bury(const api::Key& key);
  void unearth(const api::Key& key);

  const std::size_t ended_max_;
  bool heard_ = false;
  std::map<api::Key, Standing> known_;
  // Those that are no more, as long as there is room: their turns, and their names by turn.
  std::map<api::Key, std::uint64_t> gone_;
  std::map<std::uint64_t, api::Key> gone_by_turn_;
  std::uint64_t turns_ = 0;
  aio::Condition moved_;
};

// Carries news from the thread that watches to the loop. What gathers until the loop comes to it is
// one piece of news for each Sandbox.
class StandingPost : public std::enable_shared_from_this<StandingPost> {
 public:
  // It may outlive `standings`, which must then be told to forget it.
  StandingPost(aio::Executor executor, Standings& standings)
      : executor_(std::move(executor)), standings_(&standings) {}

  // From any thread.
  void tell(const api::Key& sandbox, std::optional<Standing> standing);
  void set_heard(bool heard);
  void close() { standings_ = nullptr; }  // On the loop.

 private:
  void send();
  void deliver();

  const aio::Executor executor_;
  Standings* standings_;  // Of the loop.
  std::mutex mutex_;
  StandingNews news_;
  std::optional<bool> heard_;
  bool on_its_way_ = false;
};

}  // namespace agentd
