#include "agentd/door/unix_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/testing/temporary_folder.h"

namespace agentd {
namespace {

using aio::testing::hear_all;
using ::testing::HasSubstr;

struct Case {
  const char* name;
  Allowed allowed;
  bool admitted;
};
const base::Peer kPeer{.pid = 7, .uid = 1'000, .gid = 100, .groups = {100, 27}};
const Case kCases[] = {
    {"all, when nobody is named", {}, true},
    {"by its user", {.uids = {1, 1'000}}, true},
    {"by its group", {.gids = {100}}, true},
    {"by another of its groups", {.gids = {27}}, true},
    {"by either", {.uids = {1}, .gids = {27}}, true},
    {"not by another user", {.uids = {1}}, false},
    {"not by another group", {.gids = {1}}, false},
    {"not by a group with its user's number", {.gids = {1'000}}, false},
};
TEST(Admission, IsForWhoIsNamed) {
  for (const Case& one : kCases) EXPECT_EQ(admits(one.allowed, kPeer), one.admitted) << one.name;
}

// Lets in whoever is allowed, and says so.
struct Site {
  explicit Site(Allowed allowed = {})
      : door(loop.executor(), *listener, std::move(allowed),
             [this](auto stream, Caller caller) { greet(std::move(stream), caller.name); }),
        tasks(loop.executor()) {
    tasks.spawn(door.open());
  }
  void greet(std::shared_ptr<aio::Stream> stream, std::string peer) {
    peers.push_back(std::move(peer));
    tasks.spawn(say(std::move(stream)));
  }
  static aio::Task<> say(std::shared_ptr<aio::Stream> stream) {
    static_cast<void>(co_await stream->write("come in"));
  }
  std::shared_ptr<aio::Stream> connect() {
    auto connection = base::connect_to(path);
    EXPECT_TRUE(connection) << connection.error().message;
    return aio::Stream::over(loop.executor(), *std::move(connection));
  }

  base::TemporaryFolder folder;
  const std::filesystem::path path = folder / "agentd.sock";
  aio::Loop loop;
  std::unique_ptr<base::UnixListener> listener = *base::UnixListener::at(path, {});
  UnixDoor door;
  std::vector<std::string> peers;
  aio::TaskGroup tasks;
};

aio::Task<> let_in(Site& site) {
  EXPECT_THAT(co_await hear_all(site.connect()), HasSubstr("come in"));
  EXPECT_THAT(co_await hear_all(site.connect()), HasSubstr("come in"));
  EXPECT_THAT(site.peers, ::testing::Each("uid " + std::to_string(::getuid()) + " pid " +
                                          std::to_string(::getpid())));
}
TEST(UnixDoors, LetInWhoComes) { aio::testing::tell(let_in); }

aio::Task<> turn_away(Site& site) {
  const std::string heard = co_await hear_all(site.connect());
  EXPECT_THAT(heard, HasSubstr("denied"));
  EXPECT_THAT(heard, HasSubstr("--allow-uid"));
  EXPECT_TRUE(site.peers.empty());
}
TEST(UnixDoors, TellWhoIsNotAllowed) {
  Site site({.uids = {::getuid() + 1}});
  aio::testing::run(site.loop, turn_away(site));
}

aio::Task<> run_out_of_descriptors(Site& site) {
  std::vector<std::shared_ptr<aio::Stream>> waiting;
  waiting.push_back(site.connect());
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  base::Fd next(::dup(0));
  const rlimit none{static_cast<rlim_t>(next.get()), before.rlim_max};
  next.reset();
  ::setrlimit(RLIMIT_NOFILE, &none);
  co_await aio::sleep_for(base::Milliseconds(120));
  EXPECT_TRUE(site.peers.empty());
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(co_await hear_all(waiting.front()), HasSubstr("come in"));
}
TEST(UnixDoors, OutliveALackOfDescriptors) { aio::testing::tell(run_out_of_descriptors); }

}  // namespace
}  // namespace agentd
