#include "libs/base/log.h"
#include "local_e2b/control/fleet.h"

// Fleet: what a server does with the sandboxes of the one before it, and how it ends its own.
namespace local_e2b {

aio::Task<> Fleet::adopt() {
  for (const auto& id : co_await host_.destroy_orphans())
    base::log::warn("a box whose folder somebody had removed was destroyed", {{"box", id}});
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
  const Swept swept = co_await host_.destroy_unknown(std::move(known));
  for (const auto& id : swept.destroyed)
    base::log::warn("a box that no record names was destroyed", {{"box", id}});
  for (const auto& box : swept.left) tasks_.spawn(destroy_at_last(box));
  if (adopted > 0) base::log::info("sandboxes taken over", {{"count", adopted}});
}

// False when it is gone, or was never finished: its box is destroyed with the unknown ones.
aio::Task<bool> Fleet::adopt_one(Sandbox adopted) {
  if (!adopted.box || adopted.phase == Phase::kStarting || adopted.phase == Phase::kKilling)
    co_return false;
  std::vector<BoxRecord> boxes(1, *adopted.box);
  if (!(co_await host_.dead_of(std::move(boxes))).empty()) {
    base::log::warn("a sandbox died while the server was away", {{"sandbox", adopted.id}});
    co_return false;
  }
  const auto entry = std::make_shared<Entry>(std::move(adopted), executor_);
  Sandbox& sandbox = entry->sandbox;
  entries_[sandbox.id] = entry;
  const bool to_run = sandbox.phase == Phase::kRunning;
  if (co_await host_.frozen(*sandbox.box) == to_run) {
    const auto done =
        to_run ? co_await host_.thaw(*sandbox.box) : co_await host_.freeze(*sandbox.box);
    if (!done) {
      show_as_it_is(entry, done.error());
      co_return true;
    }
  }
  if (to_run) {
    leases_.set(sandbox.id, clock_.now() + (sandbox.end_at - clock_.wall()));
  } else {
    if (sandbox.phase == Phase::kPausing) sandbox.end_at = clock_.wall();
    sandbox.phase = Phase::kPaused;
    save(*entry);
  }
  co_return true;
}

// The kernel refuses to make it what its record says: it is shown as what it is, and tried again.
void Fleet::show_as_it_is(const EntryPtr& entry, const base::Error& why) {
  Sandbox& sandbox = entry->sandbox;
  const bool to_run = sandbox.phase == Phase::kRunning;
  base::log::error(
      "a sandbox is not as its record says; trying again",
      {{"sandbox", sandbox.id}, {"it_is", to_run ? "paused" : "running"}, {"error", why}});
  entry->due = Due{to_run ? Phase::kRunning : Phase::kPaused, sandbox.end_at};
  // When it runs it has no lease: only who asks for it may end it.
  sandbox.phase = to_run ? Phase::kPaused : Phase::kRunning;
  if (to_run) {
    sandbox.end_at = clock_.wall();
    leases_.remove(sandbox.id);
  }
  tasks_.spawn(mend(entry));
}

aio::Task<> Fleet::mend(EntryPtr entry) {
  const Phase shown = entry->sandbox.phase;
  while (entry->due) {
    co_await aio::sleep_for(limits_.retry);
    if (entry->due && entry->sandbox.phase == shown) co_await give_its_due(entry);
  }
}

aio::Task<> Fleet::give_its_due(EntryPtr entry) {
  if (entry->due->phase == Phase::kPaused) {
    (void)co_await do_pause(entry);
    co_return;
  }
  const auto left = entry->due->end_at - clock_.wall();
  if (left.count() > 0) {
    (void)co_await do_resume(entry, std::chrono::ceil<base::Seconds>(left).count());
  } else if (entry->sandbox.auto_pause) {
    entry->due.reset();
    save(*entry);
  } else {
    (void)co_await do_kill(entry);
  }
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
