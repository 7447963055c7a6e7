#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/sessions/testing/site.h"
#include "libs/wire/frames/file_operations.h"

// What of a session's doings counts as activity, with real commands.
namespace executor {
namespace {

using testing::Asking;
using testing::Client;
using testing::Site;
using testing::tell_connected;
using testing::wait_until;
using namespace std::chrono_literals;

constexpr Asking kMutating{.mutating = true};

// So much time passes for the executor, in which everybody is looked at as often as there.
base::Milliseconds idle_after(Site& site, base::Milliseconds time) {
  for (base::Milliseconds passed{}; passed < time; passed += 500ms) {
    site.clock.advance(500ms);
    site.activity.look(site.clock.now());
  }
  return site.activity.idle_for(site.clock.now());
}

aio::Task<std::string> begin(Site& site, const std::string& script, Asking how = kMutating) {
  auto args = site.shell(script);
  EXPECT_TRUE((co_await Client::ask(site.client, args, std::move(how))).ok);
  co_return args.handle;
}

aio::Task<> only_open(Site& site) {
  co_await Client::ask(site.client, wire::StatArgs{{.path = "/"}});
  idle_after(site, 0s);
  EXPECT_GE(idle_after(site, 60s), 59s);
}
TEST(Activity, IsNoSessionThatIsOnlyOpen) { tell_connected(only_open); }

aio::Task<> asked(Site& site) {
  idle_after(site, 0s);
  EXPECT_GE(idle_after(site, 60s), 59s);
  co_await Client::ask(site.client, wire::StatArgs{{.path = "/"}});
  EXPECT_LT(site.activity.idle_for(site.clock.now()), 10s);
}
TEST(Activity, IsEachQuestion) { tell_connected(asked); }

// A language server that nobody asks, a prompt that waits, and somebody who waits for its end, or
// for more of what it says.
aio::Task<> waiting(Site& site) {
  auto args = site.shell("read line");
  args.in = wire::Pipe{site.client.session.new_stream()};
  args.out = wire::Collected{1024};
  const Asking how{.mutating = true, .to_server = {std::get<wire::Pipe>(args.in).stream}};
  EXPECT_TRUE((co_await Client::ask(site.client, args, how)).ok);
  co_await begin(site, "sleep 1000");
  const auto waits = site.client.session.ask(
      {.op = std::string(wire::WaitArgs::kOp), .args = wire::to_json(wire::WaitArgs{args.handle})});
  EXPECT_TRUE(waits);
  const wire::ReadOutputArgs more{.handle = args.handle, .wait_ms = 600'000};
  EXPECT_TRUE(site.client.session.ask(
      {.op = std::string(wire::ReadOutputArgs::kOp), .args = wire::to_json(more), .down = true}));
  const auto watches =
      site.client.session.ask({.op = std::string(wire::WatchArgs::kOp),
                               .args = wire::to_json(wire::WatchArgs{{.path = "/tmp"}}),
                               .down = true});
  EXPECT_TRUE(watches);
  site.client.said.notify_all();
  co_await Client::ask(site.client, wire::StatArgs{{.path = "/"}});  // By then both are there.
  idle_after(site, 0s);
  EXPECT_GE(idle_after(site, 60s), 59s);
}
TEST(Activity, IsNobodyWhoWaits) { tell_connected(waiting); }

aio::Task<> burning(Site& site) {
  if (site.cgroup.path().empty()) co_return;  // Then all of this machine would be looked at.
  const std::string gate = site.folder / "gate";
  EXPECT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  idle_after(site, 0s);
  co_await begin(site, "read line <" + gate + "; while :; do :; done");
  EXPECT_GE(idle_after(site, 10s), 9s) << "its start lies behind us";
  const base::Fd opened(::open(gate.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::write(opened.get(), "\n", 1), 1);
  while (site.activity.idle_for(site.clock.now()) > 0ms) co_await aio::sleep_for(500ms);
}
TEST(Activity, IsWhatUsesTheCpu) { tell_connected(burning); }

aio::Task<> printing(Site& site) {
  auto args = site.shell("read line; echo $line; sleep 1000");
  const auto in = site.client.session.new_stream(), out = site.client.session.new_stream();
  args.in = wire::Pipe{in};
  args.out = wire::Pipe{out};
  const Asking how{.mutating = true, .to_client = {out}, .to_server = {in}};
  EXPECT_TRUE((co_await Client::ask(site.client, args, how)).ok);
  idle_after(site, 0s);
  EXPECT_GE(idle_after(site, 60s), 59s);
  site.client.session.append(in, "hello\n");
  site.client.said.notify_all();
  while (site.activity.idle_for(site.clock.now()) > 10s) co_await aio::sleep_for(5ms);
}
TEST(Activity, IsEachByteOfAProgram) { tell_connected(printing); }

}  // namespace
}  // namespace executor
