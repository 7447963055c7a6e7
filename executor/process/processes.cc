#include "executor/process/processes.h"

#include <signal.h>

#include <algorithm>

#include "libs/base/log.h"

namespace executor {

Processes::Processes(aio::Executor executor, std::optional<Groups> groups, GroupCare care)
    : executor_(executor), groups_(std::move(groups)), tasks_(executor) {
  if (groups_) tasks_.spawn(tend_groups(care));
}

aio::Task<> Processes::tend_groups(GroupCare care) {
  for (;;) {
    groups_->remove_abandoned(base::SystemClock().now(), care.kept);
    co_await aio::sleep_for(care.look_every);
  }
}

base::Result<Begun> Processes::start(Command command, Launch launch_as,
                                     std::optional<base::Milliseconds> lifetime) {
  const auto running = std::count_if(started_.begin(), started_.end(),
                                     [](const Started& one) { return one.process->running(); });
  if (static_cast<std::size_t>(running) >= kRunningMax)
    return base::error(base::ErrorCode::kRateLimited, "already ", std::to_string(kRunningMax),
                       " commands run; end some first");
  std::optional<std::filesystem::path> group;
  if (groups_) {
    // Full of others' groups, say. The command is worth more than an exact tree.
    if (auto made = groups_->make()) {
      group = *std::move(made);
      launch_as.group = group->string();
    } else {
      base::log::warn("no cgroup for a command", {{"error", made.error()}});
    }
  }
  auto launched = launch(launch_as);
  if (!launched) {
    if (groups_) groups_->remove_empty();
    return launched.error();
  }
  auto process = std::make_shared<Process>(executor_, *std::move(launched), std::move(group));
  Begun begun{process, process->subscribe()};
  started_.push_front({std::move(command), process});
  tasks_.spawn(look_after(process));
  if (lifetime) tasks_.spawn(end_in_time(process, *lifetime));
  return begun;
}

aio::Task<> Processes::look_after(std::shared_ptr<Process> process) {
  co_await process->run();
  if (groups_) groups_->remove_empty();
  const Process* ended = process.get();
  const std::weak_ptr<Process> kept =
      std::move(process);  // Surplus ones are not kept for the wait.
  forget_surplus();
  co_await aio::sleep_for(kEndKept);
  if (groups_) groups_->remove_empty();
  if (kept.expired()) co_return;
  started_.remove_if([&](const Started& one) { return one.process.get() == ended; });
}

aio::Task<> Processes::end_in_time(std::weak_ptr<Process> weak, base::Milliseconds lifetime) {
  co_await aio::sleep_for(lifetime);
  const auto process = weak.lock();
  if (process && process->running()) process->signal(SIGKILL);
}

void Processes::forget_surplus() {
  std::size_t ended = 0;
  started_.remove_if(
      [&](const Started& one) { return !one.process->running() && ++ended > kEndedMax; });
}

std::vector<Started> Processes::running() const {
  std::vector<Started> running;
  for (const Started& one : started_)
    if (one.process->running()) running.push_back(one);
  return running;
}

std::shared_ptr<Process> Processes::find(const Selector& selector) const {
  std::shared_ptr<Process> ended;
  for (const Started& one : started_) {
    const auto* pid = std::get_if<std::uint32_t>(&selector);
    const auto* tag = std::get_if<std::string>(&selector);
    const bool fits =
        pid ? static_cast<std::uint32_t>(one.process->pid()) == *pid : one.command.tag == *tag;
    if (!fits) continue;
    if (one.process->running()) return one.process;
    if (!ended) ended = one.process;
  }
  return ended;
}

}  // namespace executor
