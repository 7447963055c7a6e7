#include "cli/inside/attach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cli/reach/exit_code.h"
#include "cli/testing/inside.h"
#include "libs/base/testing/eventually.h"

// What others have left, before the serving side of sessions.
namespace cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class Left : public Inside {
 protected:
  Left() {
    with([&](ScriptedProcesses& processes) { processes.add_detached(kHandle, "notes"); });
  }
  template <typename Use>
  void with(Use use) {
    server_.with([&](wire::SessionHost&) { use(processes_); });
  }
  void write(const std::string& text) {
    with([&](ScriptedProcesses& processes) { processes.write(kHandle, text); });
  }
  void finish(std::int64_t code) {
    with([&](ScriptedProcesses& processes) { processes.finish(kHandle, code); });
  }
  void see(const std::string& text) {
    EXPECT_TRUE(base::eventually([&] { return shown() == text; })) << shown();
  }

  int ended() {
    int ended = 0;
    with([&](ScriptedProcesses& processes) { ended = processes.sessions_ended(); });
    return ended;
  }

  const std::string kHandle = std::string(16, 'a');
};

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

TEST_F(Left, AttachTakesNothingFromASession) {
  with([&](ScriptedProcesses& processes) { processes.add(kHandle, "notes"); });
  EXPECT_EQ(run({"attach", kHandle}), kNotBegun);
  EXPECT_THAT(warned_.str(), HasSubstr("belongs to a session"));
  EXPECT_EQ(run({"attach", std::string(16, 'b')}), kNotBegun);
  EXPECT_THAT(warned_.str(), HasSubstr("no such handle"));
}

TEST_F(Left, LogsShowWhatIsKept) {
  write("one\ntwo\nthree\n");
  EXPECT_EQ(run({"logs", kHandle}), 0) << "and do not wait for the end";
  EXPECT_EQ(shown(), "one\ntwo\nthree\n");
  with([&](ScriptedProcesses& processes) { processes.keep_from(kHandle, 4); });
  EXPECT_EQ(run({"logs", kHandle}), 0);
  EXPECT_EQ(shown(), "one\ntwo\nthree\ntwo\nthree\n");
  EXPECT_EQ(warned_.str(),
            "sandfleet: the first 4 bytes of its stdout are gone: no more is kept\n");
  warned_.str("");
  EXPECT_EQ(run({"logs", "--tail", "1", kHandle}), 0);
  EXPECT_THAT(shown(), testing::EndsWith("two\nthree\nthree\n"));
  EXPECT_EQ(warned_.str(), "") << "of what was asked for nothing is gone";
  EXPECT_EQ(run({"logs", "--tail", "3", kHandle}), 0);
  EXPECT_THAT(shown(), testing::EndsWith("three\nthree\ntwo\nthree\n"));
  EXPECT_THAT(warned_.str(), HasSubstr("the first 4 bytes"));
}

TEST_F(Left, LogsCountLinesOverManyBlocks) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += "line " + std::to_string(i) + "\n";
  write(text);
  EXPECT_EQ(run({"logs", "--tail", "30000", kHandle}), 0);
  EXPECT_TRUE(shown() == text.substr(text.find("line 10000\n")));
}

TEST_F(Left, LogsOfTheOtherOutputSayThatThereIsNone) {
  EXPECT_EQ(run({"logs", "--stderr", kHandle}), kNotFound);
  EXPECT_THAT(warned_.str(), HasSubstr("nothing was to be kept"));
  EXPECT_EQ(run({"logs", std::string(16, 'b')}), kNotFound);
}

TEST_F(Left, LogsFollowToTheEnd) {
  write("one\n");
  auto code = begin({"logs", "-f", kHandle});
  see("one\n");
  write("two\n");
  see("one\ntwo\n");
  server_.cut();
  write("three\n");
  see("one\ntwo\nthree\n");
  server_.begin_anew();  // What is read belongs to no session.
  write("four\n");
  see("one\ntwo\nthree\nfour\n");
  finish(3);
  EXPECT_EQ(code.get(), 0);
}

TEST_F(Left, LogsAreEndedByASignal) {
  write("one\n");
  auto code = begin({"logs", "-f", kHandle});
  see("one\n");
  send(SIGINT);
  EXPECT_EQ(code.get(), 128 + SIGINT);
  EXPECT_TRUE(base::eventually([&] { return ended() > 0; })) << "its session ends at once";
}

}  // namespace
}  // namespace cli
