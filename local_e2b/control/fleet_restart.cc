#include "libs/base/log.h"
#include "local_e2b/control/fleet.h"

// Fleet: what a server does with the sandboxes of the one before it, and how it ends its own.
namespace local_e2b {

aio::Task<> Fleet::adopt() {
  std::size_t adopted = 0;
  for (auto& sandbox : records_.load()) {
    const std::string id = sandbox.id;
    if (co_await adopt_one(std::move(sandbox)))
      ++adopted;
    else
      records_.remove(id);
  }
  std::vector<BoxRecord> known;
  for (const auto& [id, entry] : entries_) known.push_back(*entry->sandbox.box);
  for (const auto& id : co_await host_.destroy_unknown(std::move(known)))
    base::log::warn("a box that no record names was destroyed", {{"box", id}});
  if (adopted > 0) base::log::info("sandboxes taken over", {{"count", adopted}});
}

// False when it is gone, or was never finished: its box is destroyed with the unknown ones.
aio::Task<bool> Fleet::adopt_one(Sandbox sandbox) {
  if (!sandbox.box || sandbox.phase == Phase::kStarting || sandbox.phase == Phase::kKilling)
    co_return false;
  std::vector<BoxRecord> boxes(1, *sandbox.box);
  if (!(co_await host_.dead_of(std::move(boxes))).empty()) {
    base::log::warn("a sandbox died while the server was away", {{"sandbox", sandbox.id}});
    co_return false;
  }
  if (sandbox.phase == Phase::kRunning) {
    if (co_await host_.frozen(*sandbox.box) && !co_await host_.thaw(*sandbox.box)) co_return false;
    leases_.set(sandbox.id, clock_.now() + (sandbox.end_at - clock_.wall()));
  } else {
    if (!co_await host_.frozen(*sandbox.box) && !co_await host_.freeze(*sandbox.box))
      co_return false;
    if (sandbox.phase == Phase::kPausing) sandbox.end_at = clock_.wall();
    sandbox.phase = Phase::kPaused;
    save(sandbox);
  }
  const std::string id = sandbox.id;
  entries_[id] = std::make_shared<Entry>(std::move(sandbox), executor_);
  co_return true;
}

aio::Task<> Fleet::kill_all() {
  tasks_.cancel();
  while (work_->count > 0) co_await work_->done.wait();
  aio::TaskGroup ends(executor_);
  const auto every = entries_;
  for (const auto& [id, entry] : every) ends.spawn(end(entry));
  co_await ends.wait();
  std::vector<BoxRecord> known;
  for (const auto& [id, entry] : entries_)
    if (entry->sandbox.box) known.push_back(*entry->sandbox.box);
  (void)co_await host_.destroy_unknown(std::move(known));  // Those that were being built.
}

aio::Task<> Fleet::end(EntryPtr entry) {
  if (entry->sandbox.box && !co_await host_.destroy(*entry->sandbox.box)) {
    base::log::warn("a sandbox could not be destroyed", {{"sandbox", entry->sandbox.id}});
    co_return;
  }
  forget(entry);
}

}  // namespace local_e2b
