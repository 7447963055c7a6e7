#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "executor/process/child.h"
#include "executor/process/reaper.h"
#include "executor/process/tree.h"
#include "executor/subprocess/containment.h"
#include "libs/aio/stream.h"

namespace executor {
namespace {

class ReaperContainment final : public Containment {
 public:
  ReaperContainment(const aio::Executor& executor, Launched& launched)
      : reaper_(launched.pid),
        exit_notice_(aio::Stream::over(executor, std::move(launched.pidfd))),
        line_(aio::Stream::over(executor, std::move(launched.reaper))) {}

  // Without its line the reaper kills the tree and ends. It is reaped with this program then.
  ~ReaperContainment() override = default;

  aio::Task<base::Result<base::Done>> watch(const TreeNews& news) override {
    bool empty = false;
    for (ReaperWord word{}; !empty;) {
      const auto got = co_await line_->read(reinterpret_cast<char*>(&word), sizeof word);
      if (!got && got.error().code == base::ErrorCode::kCancelled) co_return got.error();
      if (!got || *got != sizeof word) break;
      if (word.kind == ReaperWord::kBegun) news.begun(word.value);
      if (word.kind == ReaperWord::kEnded) news.exited(exit_of(word.value));
      empty = word.kind == ReaperWord::kEmpty;
    }
    CO_CHECK_OK(co_await until_ended(exit_notice_, reaper_));
    reap(reaper_);
    reaped_ = true;
    if (!empty)
      co_return base::error(base::ErrorCode::kUnavailable,
                            "the process that watches over the command was killed");
    co_return base::Done{};
  }

  std::vector<pid_t> members() const override {
    std::vector<pid_t> pids;
    if (reaped_) return pids;
    for (const base::ProcessFacts& process : descendants(read_processes(), reaper_))
      if (process.pid != reaper_ && !process.ended()) pids.push_back(process.pid);
    return pids;
  }

  base::Result<base::Done> kill() override {
    if (::send(line_->read_descriptor(), &kKillTree, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
      return base::Done{};
    return base::error(base::ErrorCode::kUnavailable,
                       "cannot tell the watching process to kill: ", std::strerror(errno));
  }

 private:
  pid_t reaper_;
  std::shared_ptr<aio::Stream> exit_notice_, line_;
  bool reaped_ = false;
};

class ReaperContainments final : public Containments {
 public:
  explicit ReaperContainments(aio::Executor executor) : executor_(std::move(executor)) {}

  base::Result<Contained> begin(Launch launch) override {
    launch.under_reaper = true;
    TRY(Launched launched, begin_launch(launch));
    auto tree = std::make_unique<ReaperContainment>(executor_, launched);
    return Contained{std::move(launched), std::move(tree)};
  }

 private:
  aio::Executor executor_;
};

}  // namespace

std::unique_ptr<Containments> contain_by_reapers(aio::Executor executor) {
  return std::make_unique<ReaperContainments>(std::move(executor));
}

}  // namespace executor
