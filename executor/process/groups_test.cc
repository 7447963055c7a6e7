#include "executor/process/groups.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "executor/process/processes.h"
#include "libs/base/kernel_files.h"
#include "libs/base/testing/cgroup.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class GroupsOfACommand : public testing::Test {
 protected:
  void SetUp() override {
    if (cgroup_.path().empty()) GTEST_SKIP() << "no cgroup2 folder can be made here";
    group_ = *groups_.make();
  }

  const base::TemporaryCgroup cgroup_;
  Groups groups_{cgroup_.path()};
  fs::path group_;
  const base::Moment start_{seconds(1000)};
};

TEST_F(GroupsOfACommand, GoAtOnceWhenNothingIsInThem) {
  fs::create_directory(cgroup_.path() / "others");
  groups_.remove_empty();
  EXPECT_FALSE(fs::exists(group_));
  EXPECT_TRUE(fs::remove(cgroup_.path() / "others")) << "only its own are removed";
}

TEST_F(GroupsOfACommand, GoWithThoseMadeInThemOnceNobodyHasComeForLong) {
  fs::create_directories(group_ / "sandfleet/deep");
  fs::create_directory(group_ / "second");
  groups_.remove_empty();
  groups_.remove_abandoned(start_, seconds(10));
  groups_.remove_abandoned(start_ + seconds(9), seconds(10));
  EXPECT_TRUE(fs::exists(group_ / "sandfleet/deep")) << "somebody may be on the way";
  groups_.remove_abandoned(start_ + seconds(10), seconds(10));
  EXPECT_FALSE(fs::exists(group_));
}

TEST_F(GroupsOfACommand, StayWhileAProcessIsBeneathThem) {
  fs::create_directory(group_ / "sandfleet");
  groups_.remove_abandoned(start_, seconds(10));
  const pid_t member = ::fork();
  if (member == 0) {
    for (;;) ::pause();
  }
  ASSERT_TRUE(base::write_setting(group_ / "sandfleet/cgroup.procs", std::to_string(member)));
  groups_.remove_abandoned(start_ + seconds(20), seconds(10));
  EXPECT_TRUE(fs::exists(group_ / "sandfleet"));
  ::kill(member, SIGKILL);
  ::waitpid(member, nullptr, 0);
  groups_.remove_abandoned(start_ + seconds(21), seconds(10));
  EXPECT_TRUE(fs::exists(group_ / "sandfleet")) << "the time counts from its last member's end";
  groups_.remove_abandoned(start_ + seconds(31), seconds(10));
  EXPECT_FALSE(fs::exists(group_));
}

TEST_F(GroupsOfACommand, KnowTheirMembersAndThoseBeneathAndEndThem) {
  fs::create_directories(group_ / "inner/deep");
  fs::create_directory(cgroup_.path() / "others");
  std::vector<pid_t> members;
  for (const fs::path& place : {group_, group_ / "inner/deep", cgroup_.path() / "others"}) {
    members.push_back(::fork());
    if (members.back() == 0) {
      for (;;) ::pause();
    }
    ASSERT_TRUE(base::write_setting(place / "cgroup.procs", std::to_string(members.back())));
  }
  EXPECT_EQ(members_of(group_), (std::vector<pid_t>{members[0], members[1]}));
  EXPECT_TRUE(members_of(cgroup_.path() / "absent").empty());
  EXPECT_FALSE(Groups::remove(group_));
  groups_.kill_all();
  for (const pid_t member : {members[0], members[1]}) ::waitpid(member, nullptr, 0);
  EXPECT_TRUE(Groups::remove(group_));
  EXPECT_FALSE(fs::exists(group_));
  EXPECT_TRUE(base::runs(members[2])) << "it was not started by us";
  ::kill(members[2], SIGKILL);
  ::waitpid(members[2], nullptr, 0);
}

TEST_F(GroupsOfACommand, OfAnotherOwnerAreLeftAlone) {
  const Groups theirs(cgroup_.path(), "run-1");
  const fs::path their_group = *theirs.make();
  const pid_t member = ::fork();
  if (member == 0) {
    for (;;) ::pause();
  }
  ASSERT_TRUE(base::write_setting(their_group / "cgroup.procs", std::to_string(member)));
  const Groups alike(cgroup_.path(), "run-12");
  alike.kill_all();
  groups_.kill_all();
  groups_.remove_empty();
  EXPECT_TRUE(base::runs(member));
  EXPECT_TRUE(fs::exists(their_group));
  theirs.kill_all();
  int status = 0;
  EXPECT_EQ(::waitpid(member, &status, 0), member);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(Groups::remove(their_group));
}

TEST_F(GroupsOfACommand, AreRemovedManyAtATime) {
  for (int number = 0; number < 300; ++number)
    fs::create_directory(group_ / std::to_string(number));
  for (int look = 0; look < 2; ++look) groups_.remove_abandoned(start_, seconds(0));
  EXPECT_FALSE(fs::exists(group_)) << "the second look took what the first left";
}

aio::Task<int> until_gone(aio::Loop& loop, Groups groups, fs::path group) {
  Processes processes(loop.executor(), std::move(groups),
                      {.kept = base::Milliseconds(20), .look_every = base::Milliseconds(5)});
  const auto deadline = base::SystemClock().now() + seconds(60);
  while (fs::exists(group) && base::SystemClock().now() < deadline)
    co_await aio::sleep_for(base::Milliseconds(1));
  co_return 0;
}
TEST_F(GroupsOfACommand, AreTendedWhileCommandsCanBeStarted) {
  fs::create_directory(group_ / "sandfleet");
  aio::Loop loop;
  loop.run(until_gone(loop, groups_, group_));
  EXPECT_FALSE(fs::exists(group_));
}

}  // namespace
}  // namespace executor
