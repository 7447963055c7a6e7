#include "cli/inside/attach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cli/reach/exit_code.h"
#include "cli/testing/left.h"

// What others have left, before the serving side of sessions.
namespace cli {
namespace {

using testing::HasSubstr;

TEST_F(Left, AttachShowsWhatIsKeptAndWhatComesAndEndsAsItDoes) {
  write("gone and kept ");
  with([&](ScriptedProcesses& processes) { processes.keep_from(kHandle, 9); });
  auto code = begin({"attach", "team/box", kHandle});
  see("kept ");
  write("new");
  see("kept new");
  finish(3);
  EXPECT_EQ(code.get(), 3);
  EXPECT_EQ(warned_.str(),
            "sandfleet: the first 9 bytes of its stdout are gone: no more is kept\n");
}

TEST_F(Left, AttachPassesOnStandardInputWhereItIsAskedFor) {
  auto code = begin({"attach", "-i", kHandle});
  ASSERT_TRUE(base::write_all(in_.second.get(), "said"));
  see("said");
  ASSERT_TRUE(base::write_all(in_.second.get(), "x"));
  EXPECT_EQ(code.get(), 9);
}

TEST_F(Left, WhoLeavesHearsTheWayBack) {
  write("kept");
  auto code = begin({"attach", kHandle});
  see("kept");
  send(SIGINT);
  EXPECT_EQ(code.get(), 128 + SIGINT);
  EXPECT_THAT(warned_.str(), HasSubstr("back to it: sandfleet attach team/box " + kHandle + "\n"));
  EXPECT_TRUE(heard().empty()) << "it is nobody's signal but ours";
}

TEST_F(Left, WhoIsLetInNoMoreHearsOfNoWayBack) {
  write("kept");
  auto code = begin({"attach", kHandle});
  see("kept");
  become_another();
  EXPECT_EQ(code.get(), kWayLost);
  EXPECT_THAT(warned_.str(), HasSubstr("what became of it is not known: token refused"));
  EXPECT_THAT(warned_.str(), testing::Not(HasSubstr("back to it")));
}

TEST_F(Left, AttachTakesNothingFromASession) {
  with([&](ScriptedProcesses& processes) { processes.add(kHandle, "notes"); });
  EXPECT_EQ(run({"attach", kHandle}), kNotBegun);
  EXPECT_THAT(warned_.str(), HasSubstr("belongs to a session"));
  EXPECT_EQ(run({"attach", std::string(16, 'b')}), kNotBegun);
  EXPECT_THAT(warned_.str(), HasSubstr("no such handle"));
}

}  // namespace
}  // namespace cli
