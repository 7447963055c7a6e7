#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/subprocess/subprocesses.h"
#include "executor/subprocess/testing/robbed.h"
#include "executor/testing/marked.h"
#include "executor/testing/scratch.h"
#include "libs/aio/testing/run.h"
#include "libs/base/crypto.h"
#include "libs/base/testing/cgroup.h"

// A sandbox's subprocesses for one test.
namespace executor::testing {

enum class HeldBy { kGroups, kReapers };

class Site {
 public:
  explicit Site(HeldBy held = HeldBy::kGroups, SubprocessLimits limits = {},
                std::filesystem::path groups = {})
      : subprocesses(make(held, limits, std::move(groups))) {
    ::signal(SIGPIPE, SIG_IGN);
  }

  SpawnRequest request(std::vector<std::string> argv) {
    SpawnRequest made;
    made.id = "handle-of-a-test-" + std::to_string(++count_);
    made.argv = std::move(argv);
    made.cwd = scratch.path().string();
    made.env = {{kMark, mark}};
    made.stdout_mode = Collect{64'000};
    made.stderr_mode = Collect{64'000};
    made.grace_ms = 10'000;
    return made;
  }
  SpawnRequest shell(const std::string& script) { return request({"sh", "-c", script}); }

  // The process, which begins; nothing when it does not, and the test has failed.
  aio::Task<std::shared_ptr<Subprocess>> spawn(SpawnRequest request) {
    auto spawned = co_await subprocesses.spawn(caller, std::move(request));
    EXPECT_TRUE(spawned) << (spawned ? "" : spawned.error().message);
    if (!spawned) co_return nullptr;
    co_return *std::move(spawned);
  }

  std::size_t left() const { return marked(mark).size(); }

  const std::string mark = base::random_hex(8);
  aio::Loop loop;
  aio::Background background{2};
  Scratch scratch;
  std::optional<base::TemporaryCgroup> cgroup;  // Where no other was given.
  std::shared_ptr<Mechanisms> mechanisms = std::make_shared<Mechanisms>();
  std::unique_ptr<Containments> containments;
  std::shared_ptr<SpillFolder> spills;
  Subprocesses subprocesses;
  Caller caller{"session-1", {PermissionMode::kDangerFullAccess, {"/"}}};

 private:
  std::unique_ptr<Containments> held_by_groups(std::filesystem::path groups) {
    if (groups.empty()) groups = cgroup.emplace().path();
    EXPECT_FALSE(groups.empty()) << "no cgroup2 folder can be made here";
    return contain_by_groups(loop.executor(), Groups(groups));
  }

  SubprocessSite make(HeldBy held, SubprocessLimits limits, std::filesystem::path groups) {
    containments = rob(loop.executor(),
                       held == HeldBy::kGroups ? held_by_groups(std::move(groups))
                                               : contain_by_reapers(loop.executor()),
                       mechanisms);
    auto opened =
        SpillFolder::open(loop.executor(), scratch.path() / "spills", 1 << 30, background);
    if (opened) spills = *opened;
    const char* path = std::getenv("PATH");
    return {.executor = loop.executor(),
            .background = background,
            .containments = *containments,
            .spills = spills,
            .user = {},
            .environment = {{"PATH", path ? path : "/usr/bin:/bin"}},
            .limits = limits};
  }
  int count_ = 0;
};

// All that it writes, acknowledged as it comes.
inline aio::Task<std::string> read_all(std::shared_ptr<ProcessOutput> output) {
  std::string all;
  for (std::int64_t at = 0;;) {
    co_await output->wait_for(at);
    const auto piece = output->read(at, 1 << 20);
    EXPECT_TRUE(piece);
    if (!piece) co_return all;
    all += piece->bytes;
    at = piece->next;
    static_cast<void>(output->acknowledge(at));
    if (piece->ended) co_return all;
  }
}

// Tells `story` of both ways to hold a tree.
template <typename... Arguments>
void tell_both(aio::Task<> (*story)(Site&), Arguments... arguments) {
  for (const HeldBy held : {HeldBy::kGroups, HeldBy::kReapers}) {
    SCOPED_TRACE(held == HeldBy::kGroups ? "held by groups" : "held by reapers");
    aio::testing::tell<Site>(story, held, arguments...);
  }
}

}  // namespace executor::testing
