#include <gtest/gtest.h>
#include <signal.h>

#include "executor/sessions/testing/site.h"
#include "executor/testing/http.h"
#include "executor/testing/marked.h"
#include "executor/testing/program.h"
#include "executor/testing/scratch.h"
#include "libs/aio/testing/run.h"
#include "libs/base/crypto.h"
#include "libs/base/testing/cgroup.h"
#include "libs/wire/frames/file_operations.h"

namespace executor {
namespace {

using testing::Asking;
using testing::Client;
using testing::Streamed;
using testing::wait_until;
using wire::FailureCode;
using wire::WaitUntil;

constexpr Asking kMutating{.mutating = true};

// The real program, told by its controller who it is; and a client of its sessions. Its commands
// are in groups of a folder that goes with the test.
struct RealSite {
  RealSite()
      : program(
            arguments(),
            wire::to_json(wire::StartSecrets{"uid-1", 3, testing::attach_key(), admin_key}).dump() +
                "\n"),
        serving(program.wait_until_serving()),
        client(loop.executor(), serving.port),
        tasks(loop.executor()) {
    EXPECT_EQ(tell("/v1/resumed", resumed(testing::identity())), 200);
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> all = {
        "run", "--port", "0", "--listen", "127.0.0.1", "--runtime-dir", folder.path().string()};
    if (!cgroup.path().empty()) {
      all.push_back("--cgroup");
      all.push_back(cgroup.path().string());
    }
    return all;
  }
  static base::Json resumed(const wire::Identity& identity) {
    const base::WallTime now = base::SystemClock().wall();
    return wire::to_json(wire::Resumed{identity, now.time_since_epoch().count()});
  }
  // What its controller asks; the status of the answer.
  int tell(const std::string& path, const base::Json& body) const {
    const base::WallTime now = base::SystemClock().wall();
    const std::string token = wire::sign({.kind = wire::TokenKind::kAdmin,
                                          .uid = "uid-1",
                                          .epoch = 3,
                                          .issued = now,
                                          .expires = now + std::chrono::minutes(15)},
                                         admin_key);
    return request(serving.port, "POST", path, {{"Authorization", "Bearer " + token}}, body.dump())
        .status;
  }
  wire::SpawnArgs command(std::vector<std::string> argv) {
    return {.handle = "handle-of-a-test-" + std::to_string(++commands),
            .argv = std::move(argv),
            .env = {{testing::kMark, mark}},
            .grace_ms = 10'000};
  }
  aio::Task<> until_left(std::size_t count) {
    while (testing::marked(mark).size() != count) co_await aio::sleep_for(base::Milliseconds(5));
  }

  const std::string admin_key = std::string(32, 'a');
  const std::string mark = base::random_hex(8);
  Scratch folder;
  base::TemporaryCgroup cgroup;
  Program program;
  Program::Serving serving;
  aio::Loop loop;
  Client client;
  aio::TaskGroup tasks;
  int commands = 0;
};

// Tells `story` while the client is connected, again and again.
void tell_connected(aio::Task<> (*story)(RealSite&)) {
  RealSite site;
  aio::testing::run(site.loop, testing::connected(site.client, story(site)));
}

aio::Task<> look_at_the_root(RealSite& site) {
  const auto looked =
      (co_await Client::ask(site.client, wire::StatArgs{{.path = "/"}})).as<wire::StatArgs>();
  EXPECT_TRUE(looked.info && looked.info->type == wire::FileType::kDirectory);
  const wire::Welcome& welcome = site.client.find<wire::Welcomed>()->welcome;
  EXPECT_EQ(welcome.incarnation, testing::identity().incarnation);
  EXPECT_EQ(welcome.features, (std::vector<std::string>{"files", "watch", "processes", "terminals",
                                                        "archives", "search"}));
}
TEST(RunSessions, AnswersWhoHasAnAttachToken) { tell_connected(look_at_the_root); }

// 64 MiB that a command makes and another reads, with a cut every few hundred KiB.
aio::Task<> carry_much(RealSite& site) {
  constexpr std::int64_t kBytes = 64 << 20;
  site.client.cut = testing::after_each(700'000);
  // The same bytes each time, and not two stretches of them are the same.
  auto args = site.command({"sh", "-c",
                            "seq 1 100000000 | head -c " + std::to_string(kBytes) + " | tee " +
                                (site.folder / "made") + " | cat"});
  std::uint32_t out = 0;
  const Asking how = testing::pipe_out(site.client, args, out);
  EXPECT_TRUE((co_await Client::ask(site.client, args, how)).ok);
  const Streamed came = co_await Client::all_of(site.client, out);
  EXPECT_TRUE(came.ended && !came.error && came.skipped == 0);
  EXPECT_EQ(came.bytes.size(), static_cast<std::size_t>(kBytes));
  EXPECT_EQ(base::sha256(came.bytes), base::sha256(site.folder.read("made")));
  EXPECT_GT(site.client.cuts, 50);
  const auto over =
      (co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.exit_code, 0);
}
// covers: 4.7, X4
TEST(RunSessions, CarriesMuchOverManyCutsToTheByte) { tell_connected(carry_much); }

aio::Task<> leave_nothing(RealSite& site) {
  auto args = site.command({"sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1000; :"});
  args.grace_ms = 100;
  EXPECT_TRUE((co_await Client::ask(site.client, args, kMutating)).ok);
  co_await site.until_left(3);
  site.client.session.finish();
  site.client.said.notify_all();
  co_await site.until_left(0);
}
aio::Task<> tell_leave_nothing(RealSite& site) {
  return aio::both(Client::carry(site.client), leave_nothing(site));
}
// covers: T7, M7
TEST(RunSessions, NothingOutlivesItsSession) { aio::testing::tell(tell_leave_nothing); }

aio::Task<> lose(RealSite& site) {
  const auto args = site.command({"sleep", "1000"});
  site.tasks.spawn(Client::carry(site.client));
  EXPECT_TRUE((co_await Client::ask(site.client, args, kMutating)).ok);
  EXPECT_EQ(site.tell("/v1/quiesce", base::Json::object()), 200);
  co_await site.tasks.wait();
  base::Json told = RealSite::resumed({"uid-1", 3, 5, 7});
  told["news"] = {{"kind", "rolledBack"}, {"message", "It is as it was before."}};
  EXPECT_EQ(site.tell("/v1/resumed", told), 200);
  site.tasks.spawn(Client::carry(site.client));
  EXPECT_EQ((co_await wait_until(site.client, args.handle, WaitUntil::kExit)).code(),
            FailureCode::kLost);
  while (site.client.count<wire::Noticed>() == 0) co_await site.client.said.wait();
  EXPECT_EQ(site.client.find<wire::Noticed>()->notice.message, "It is as it was before.");
  co_await site.until_left(0);
  told["news"]["kind"] = "";
  EXPECT_EQ(site.tell("/v1/resumed", told), 400);
}
TEST(RunSessions, TellsWhatBecameOfTheSandbox) { aio::testing::tell(lose); }

aio::Task<> start_some(RealSite& site) {
  const auto args = site.command({"sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1000; :"});
  EXPECT_TRUE((co_await Client::ask(site.client, args, kMutating)).ok);
  co_await site.until_left(3);
}

TEST(RunSessions, EndsWhatItStartedWhenItIsToldToStop) {
  RealSite site;
  aio::testing::run(site.loop, testing::connected(site.client, start_some(site)));
  EXPECT_EQ(testing::marked(site.mark).size(), 3u);
  ::kill(site.program.pid(), SIGTERM);
  EXPECT_EQ(site.program.wait_for_exit(), 0);
  EXPECT_TRUE(testing::marked(site.mark).empty());
}

TEST(RunSessions, WhatItsLifeBeforeStartedIsGoneWhenItServesAgain) {
  RealSite site;
  aio::testing::run(site.loop, testing::connected(site.client, start_some(site)));
  ::kill(site.serving.pid, SIGKILL);
  EXPECT_GT(site.program.wait_until_serving(2).pid, 0);
  EXPECT_TRUE(base::eventually([&] { return testing::marked(site.mark).empty(); }));
}

}  // namespace
}  // namespace executor
