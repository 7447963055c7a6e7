#pragma once

#include <sys/socket.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agentd/carry/carriers.h"
#include "agentd/testing/executor.h"
#include "agentd/testing/harness.h"

namespace agentd::testing {

// Answers as it is told to, and remembers what it was asked.
struct ScriptedWays final : WaysIn {
  aio::Task<Answer> ask(wire::SandboxName sandbox, std::optional<std::string> token,
                        std::optional<RunOfWay> failed) override {
    ++asked;
    last_sandbox = std::move(sandbox);
    last_token = std::move(token);
    last_failed = std::move(failed);
    while (holds_back) co_await aio::sleep_for(base::Milliseconds(5));
    co_return answer();
  }
  std::function<Answer()> answer;
  bool holds_back = false;
  int asked = 0;
  wire::SandboxName last_sandbox;
  std::optional<std::string> last_token;
  std::optional<RunOfWay> last_failed;
};

struct ToldDirectory final : Directory {
  explicit ToldDirectory(aio::Executor executor) : moved_(std::move(executor)) {}
  Standing standing(const wire::SandboxName&) const override { return now; }
  aio::Condition& moved() override { return moved_; }
  void tell(Standing standing) {
    now = standing;
    moved_.notify_all();
  }
  Standing now = Standing::kRunning;

 private:
  aio::Condition moved_;
};

// What agentd carries with, an executor, and harnesses.
struct Site {
  explicit Site(RosterLimits limits = {}, CarrierTimes times = {})
      : executor(loop.executor(), {"uid-1", 3, 4, 7}),
        directory(loop.executor()),
        roster(limits),
        counts(registry),
        parts{.executor = loop.executor(),
              .dialler = dialler,
              .ways = ways,
              .directory = directory,
              .roster = roster,
              .counts = counts,
              .clock = clock,
              .usual = std::nullopt,
              .jitter = [] { return 1.0; },
              .times = times},
        carriers(std::in_place, parts, limits),
        links(loop.executor()) {
    ways.answer = [this] { return executor.way(); };
  }

  ~Site() { loop.run(finish(*this)); }

  // Harnesses live as long as this does.
  Harness& harness() { return harnesses.emplace_back(loop.executor()); }
  // The harness's end of a connection that agentd has just taken.
  std::shared_ptr<aio::Stream> connect() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    carriers->carry(aio::Stream::over(loop.executor(), base::Fd(ends[0])), caller);
    return aio::Stream::over(loop.executor(), base::Fd(ends[1]));
  }
  // A link beside the test, until it is over.
  void link(Harness& harness, std::optional<std::string> token = std::nullopt) {
    links.spawn(Harness::carry(harness, connect(), std::move(token)));
  }
  // What the metric counted so far.
  std::string metric(const std::string& series) {
    const std::string all = "\n" + registry.expose();
    const std::size_t at = all.find("\n" + series + " ");
    if (at == std::string::npos) return "none";
    const std::size_t value = at + series.size() + 2;
    return all.substr(value, all.find('\n', value) - value);
  }

  aio::Loop loop;
  Names names{loop.executor()};
  Dialler dialler{names, *aio::TlsClient::with({})};
  base::SystemClock clock;
  Executor executor;
  ScriptedWays ways;
  ToldDirectory directory;
  Roster roster;
  metrics::Registry registry{metrics_table()};
  Counts counts;
  CarrierParts parts;
  std::optional<Carriers> carriers;
  Caller caller{.name = "the test"};
  std::list<Harness> harnesses;
  std::optional<Executor> other;
  aio::TaskGroup links;

 private:
  static aio::Task<int> finish(Site& site) {
    site.links.cancel();
    co_await site.links.wait();
    co_await site.carriers->end();
    co_return 0;
  }
};

// Looks again and again until it is so.
template <typename Condition>
aio::Task<bool> eventually(Condition holds) {
  for (int left = 2'000; left > 0; --left) {
    if (holds()) co_return true;
    co_await aio::sleep_for(base::Milliseconds(10));
  }
  co_return false;
}

}  // namespace agentd::testing
