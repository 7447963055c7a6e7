#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "executor/process/child.h"
#include "executor/process/vfork_thread.h"
#include "executor/subprocess/containment.h"
#include "libs/aio/stream.h"
#include "libs/base/files.h"
#include "libs/base/kernel_files.h"
#include "libs/base/log.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr base::Seconds kBetweenCares{60};

class GroupContainment final : public Containment {
 public:
  GroupContainment(const aio::Executor& executor, fs::path group, base::Fd events,
                   Launched& launched)
      : group_(std::move(group)),
        pid_(launched.pid),
        exit_notice_(aio::Stream::over(executor, std::move(launched.pidfd))),
        events_(aio::Stream::over(executor, std::move(events), base::Fd())) {}

  ~GroupContainment() override {
    if (over_) return;
    static_cast<void>(kill());
    Groups::remove(group_);
  }

  aio::Task<base::Result<base::Done>> watch(const TreeNews& news) override {
    news.begun(pid_);
    CO_CHECK_OK(co_await until_ended(exit_notice_, pid_));
    news.exited(exit_of(reap(pid_)));
    reaped_ = true;
    for (;;) {
      CO_TRY(const bool populated, is_populated());
      if (!populated) break;
      CO_CHECK_OK(co_await events_->wait_urgent());
    }
    over_ = true;
    Groups::remove(group_);
    co_return base::Done{};
  }

  std::vector<pid_t> members() const override {
    std::vector<pid_t> pids = members_of(group_);
    // It may have moved to another group, but its number is its own until we reap it.
    if (!reaped_ && std::find(pids.begin(), pids.end(), pid_) == pids.end()) pids.push_back(pid_);
    return pids;
  }

  base::Result<base::Done> kill() override {
    if (!reaped_) ::kill(pid_, SIGKILL);
    return base::write_setting(group_ / "cgroup.kill", "1");
  }

 private:
  // Reads it from its start, which also tells the kernel that we know.
  base::Result<bool> is_populated() const {
    char text[256];
    const ssize_t got = ::pread(events_->read_descriptor(), text, sizeof text, 0);
    if (got < 0 && errno == ENODEV) return false;  // Only an empty group can be removed.
    if (got < 0) return base::errno_error("read the events of", group_, errno);
    return std::string_view(text, static_cast<std::size_t>(got)).find("populated 1") !=
           std::string_view::npos;
  }

  fs::path group_;
  pid_t pid_;
  std::shared_ptr<aio::Stream> exit_notice_, events_;
  bool reaped_ = false, over_ = false;
};

class GroupContainments final : public Containments {
 public:
  GroupContainments(aio::Executor executor, Groups groups)
      : executor_(executor), groups_(std::move(groups)), otherwise_(contain_by_reapers(executor)) {
    groups_.kill_all();
  }

  base::Result<Contained> begin(Launch launch) override {
    auto group = groups_.make();
    if (!group) {
      base::log::warn("no cgroup for a command", {{"error", group.error()}});
      return otherwise_->begin(std::move(launch));
    }
    auto begun = begin_in(*group, std::move(launch));
    if (!begun) Groups::remove(*group);
    return begun;
  }

  void tend(base::Moment now) override {
    if (tended_at_ && now - *tended_at_ < kBetweenCares) return;
    tended_at_ = now;
    groups_.remove_abandoned(now, base::Milliseconds(0));
  }

  base::Milliseconds cpu_used() const override { return groups_.cpu_used(); }

 private:
  base::Result<Contained> begin_in(const fs::path& group, Launch launch) {
    base::Fd events(::open((group / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
    if (!events) return base::errno_error("watch", group, errno);
    launch.group = group.string();
    TRY(Launched launched, begin_launch(launch, &vforks_));
    auto tree = std::make_unique<GroupContainment>(executor_, group, std::move(events), launched);
    return Contained{std::move(launched), std::move(tree)};
  }

  aio::Executor executor_;
  Groups groups_;
  VforkThread vforks_;
  std::unique_ptr<Containments> otherwise_;
  std::optional<base::Moment> tended_at_;
};

}  // namespace

std::unique_ptr<Containments> contain_by_groups(aio::Executor executor, Groups groups) {
  return std::make_unique<GroupContainments>(std::move(executor), std::move(groups));
}

}  // namespace executor
