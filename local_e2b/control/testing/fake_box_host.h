#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libs/aio/loop.h"
#include "local_e2b/control/box_host.h"

namespace local_e2b {

// Boxes that exist in memory only. An operation can be held (it waits until released) or made to
// fail; what was asked of envd is kept.
class FakeBoxHost final : public BoxHost {
 public:
  explicit FakeBoxHost(aio::Executor executor) : released_(executor) {}

  struct Box {
    bool frozen = false;
  };
  std::map<std::string, Box> boxes;
  std::map<std::string, std::vector<EnvdInit>> inits;
  std::set<std::string> waiting;  // Operations that are held right now.
  std::vector<std::string> done;  // "freeze iabc", in order.
  int upstream_port = 0;          // Where dial leads, whatever the port inside.
  std::optional<std::string> no_freeze;

  void hold(const std::string& operation) { held_.insert(operation); }
  void release(const std::string& operation) {
    held_.erase(operation);
    released_.notify_all();
  }
  void fail(const std::string& operation, int times) { failures_[operation] = times; }

  aio::Task<base::Result<BoxRecord>> create(BoxSpec spec) override {
    CO_CHECK_OK(co_await act("create", spec.id));
    boxes[spec.id] = {};
    baked_[spec.id] = spec.executor_baked_in;
    co_return BoxRecord{.id = spec.id, .init_pid = 1, .folder = "/boxes/" + spec.id};
  }
  std::optional<std::string> objection_to_freeze(const BoxRecord*) const override {
    return no_freeze;
  }
  aio::Task<base::Result<base::Done>> freeze(BoxRecord box) override {
    CO_CHECK_OK(co_await act("freeze", box.id));
    boxes[box.id].frozen = true;
    co_return base::Done{};
  }
  aio::Task<base::Result<base::Done>> thaw(BoxRecord box) override {
    CO_CHECK_OK(co_await act("thaw", box.id));
    boxes[box.id].frozen = false;
    co_return base::Done{};
  }
  aio::Task<base::Result<base::Done>> destroy(BoxRecord box) override {
    CO_CHECK_OK(co_await act("destroy", box.id));
    boxes.erase(box.id);
    co_return base::Done{};
  }
  aio::Task<bool> frozen(BoxRecord box) override { co_return boxes[box.id].frozen; }
  aio::Task<std::vector<std::string>> dead_of(std::vector<BoxRecord> asked) override {
    std::vector<std::string> dead;
    for (const auto& box : asked)
      if (!boxes.contains(box.id)) dead.push_back(box.id);
    co_return dead;
  }
  aio::Task<> trim_logs(std::vector<BoxRecord>) override { co_return; }
  aio::Task<std::vector<std::string>> destroy_orphans() override {
    co_return std::vector<std::string>();
  }
  aio::Task<Swept> destroy_unknown(std::vector<BoxRecord> known) override {
    std::set<std::string> kept;
    for (const auto& box : known) kept.insert(box.id);
    Swept swept;
    const auto every = boxes;
    for (const auto& [id, box] : every) {
      if (kept.contains(id)) continue;
      if (co_await destroy({.id = id}))
        swept.destroyed.push_back(id);
      else
        swept.left.push_back({.id = id});
    }
    co_return swept;
  }
  aio::Task<base::Result<std::string>> init(BoxRecord box, EnvdInit init) override {
    CO_CHECK_OK(co_await act("init", box.id));
    inits[box.id].push_back(std::move(init));
    co_return std::string("0.6.13");
  }
  aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(BoxRecord, int) override {
    co_return co_await aio::connect("127.0.0.1", upstream_port, base::Milliseconds(60'000));
  }
  bool baked(const std::string& id) const { return baked_.at(id); }

 private:
  aio::Task<base::Result<base::Done>> act(std::string operation, std::string id) {
    while (held_.contains(operation)) {
      waiting.insert(operation);
      co_await released_.wait();
    }
    waiting.erase(operation);
    if (failures_[operation] > 0) {
      --failures_[operation];
      co_return base::error(base::ErrorCode::kUnavailable, operation, " failed as told");
    }
    done.push_back(operation + " " + id);
    co_return base::Done{};
  }

  std::set<std::string> held_;
  std::map<std::string, int> failures_;
  std::map<std::string, bool> baked_;
  aio::Condition released_;
};

}  // namespace local_e2b
