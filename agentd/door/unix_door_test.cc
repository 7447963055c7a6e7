#include "agentd/door/unix_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

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
      : door(*UnixDoor::at(
            loop.executor(), background,
            {.path = path, .allowed = std::move(allowed), .look = base::Milliseconds(5)},
            [this](auto stream, Caller caller) { greet(std::move(stream), caller.name); })),
        tasks(loop.executor()) {
    tasks.spawn(door->open());
  }
  ~Site() { loop.run(finish(*this)); }
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

  // Once one can connect.
  static aio::Task<std::shared_ptr<aio::Stream>> come(Site& site) {
    for (;;) {
      if (auto connection = base::connect_to(site.path))
        co_return aio::Stream::over(site.loop.executor(), *std::move(connection));
      co_await aio::sleep_for(base::Milliseconds(5));
    }
  }
  static aio::Task<int> finish(Site& site) {
    site.tasks.cancel();
    co_await site.tasks.wait();
    co_return 0;
  }

  base::TemporaryFolder folder;
  const std::filesystem::path path = folder / "in" / "agentd.sock";
  aio::Loop loop;
  aio::Background background{1};
  std::unique_ptr<UnixDoor> door;
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

aio::Task<> lose_the_socket(Site& site) {
  const auto open = site.connect();
  std::filesystem::remove(site.path);
  EXPECT_THAT(co_await hear_all(co_await Site::come(site)), HasSubstr("come in"));
  std::filesystem::remove_all(site.path.parent_path());
  EXPECT_THAT(co_await hear_all(co_await Site::come(site)), HasSubstr("come in"));
  EXPECT_EQ(site.door->trouble(), "");
  EXPECT_THAT(co_await hear_all(open), HasSubstr("come in")) << "who had come stays";
}
TEST(UnixDoors, MakeTheirSocketAnewWhenItIsGone) { aio::testing::tell(lose_the_socket); }

aio::Task<> lose_the_place(Site& site) {
  const auto in_the_way = site.path.parent_path();
  std::filesystem::remove_all(in_the_way);
  std::ofstream(in_the_way) << "a file where the folder was";
  while (site.door->trouble().empty()) co_await aio::sleep_for(base::Milliseconds(5));
  EXPECT_THAT(site.door->trouble(), HasSubstr("in"));
  std::filesystem::remove(in_the_way);
  EXPECT_THAT(co_await hear_all(co_await Site::come(site)), HasSubstr("come in"));
  EXPECT_EQ(site.door->trouble(), "");
}
TEST(UnixDoors, SayThatNobodyCanConnect) { aio::testing::tell(lose_the_place); }

TEST(UnixDoors, DoNotOpenWhereAnotherIs) {
  Site site;
  const auto second = UnixDoor::at(site.loop.executor(), site.background, {.path = site.path},
                                   [](auto, const Caller&) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, base::ErrorCode::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("another process listens there"));
}

// Two ends of a connection. Whatever is there for the loop is looked at before so much has gone
// through it.
struct Turns {
  explicit Turns(aio::Executor executor) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near = aio::Stream::over(executor, base::Fd(ends[0]));
    far = aio::Stream::over(executor, base::Fd(ends[1]));
  }
  static aio::Task<> take_some(Turns& turns) {
    char byte = 'x';
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(co_await turns.near->write("x"));
      EXPECT_TRUE(co_await turns.far->read(&byte, 1));
    }
  }
  std::shared_ptr<aio::Stream> near, far;
};

aio::Task<> run_out_of_descriptors(Site& site) {
  Turns turns(site.loop.executor());
  std::vector<std::shared_ptr<aio::Stream>> waiting;
  waiting.push_back(site.connect());
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  base::Fd next(::dup(0));
  const rlimit none{static_cast<rlim_t>(next.get()), before.rlim_max};
  next.reset();
  ::setrlimit(RLIMIT_NOFILE, &none);
  co_await Turns::take_some(turns);
  EXPECT_TRUE(site.peers.empty());
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(co_await hear_all(waiting.front()), HasSubstr("come in"));
}
TEST(UnixDoors, OutliveALackOfDescriptors) { aio::testing::tell(run_out_of_descriptors); }

}  // namespace
}  // namespace agentd
