#include "cli/logs/logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <regex>

#include "cli/reach/exit_code.h"
#include "cli/testing/left.h"

// Of what others have left, before the serving side of sessions.
namespace cli {
namespace {

using testing::HasSubstr;

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

TEST_F(Left, LogsAskOnceHoweverLongNothingIsSaid) {
  auto code = begin({"logs", "-f", kHandle});
  ASSERT_TRUE(base::eventually([&] { return readings() == 1; }));
  std::optional<std::int64_t> wait;
  with([&](ScriptedProcesses& processes) { wait = processes.last_reading()->wait_ms; });
  EXPECT_GE(wait.value_or(0), 3'600'000) << "whoever asks again keeps up what idles";
  finish(0);
  EXPECT_EQ(code.get(), 0);
  EXPECT_EQ(readings(), 1);
}

TEST_F(Left, LogsEndWithTheirReaderAlsoWhileNothingIsSaid) {
  auto [reader, writer] = new_pipe();
  out_ = std::move(writer);
  auto code = begin({"logs", "-f", kHandle});
  ASSERT_TRUE(base::eventually([&] { return readings() == 1; }));
  reader.reset();
  EXPECT_EQ(code.get(), 128 + SIGPIPE);
}

// It writes more than is kept whenever somebody looks.
TEST_F(Left, LogsShowTheLastLinesOfWhoWritesFasterThanIsRead) {
  write("0\n");
  rush({.lines = 50'000, .kept_bytes = 256 << 10, .times = 1'000});
  EXPECT_EQ(run({"logs", "--tail", "5", kHandle}), 0);
  EXPECT_EQ(shown(), "49996\n49997\n49998\n49999\n50000\n");
  EXPECT_EQ(warned_.str(), "");
}

// How many bytes were told to be gone.
std::int64_t told_gone(const std::string& warnings) {
  static const std::regex kGap("sandfleet: (\\d+) bytes of its stdout were gone before");
  std::int64_t gone = 0;
  for (std::sregex_iterator each(warnings.begin(), warnings.end(), kGap), end; each != end; ++each)
    gone += std::stoll((*each)[1]);
  return gone;
}

class LogsOfAFastWriter : public Left, public testing::WithParamInterface<int> {};
TEST_P(LogsOfAFastWriter, MissNothingUntoldBetweenTheLastLinesAndWhatFollows) {
  const int lines = GetParam();
  write("0\n");
  rush({.lines = lines, .kept_bytes = 256 << 10, .times = 4});
  auto code = begin({"logs", "-f", "--tail", "5", kHandle});
  EXPECT_TRUE(base::eventually([&] { return readings() == 5; })) << readings();
  std::string all;
  with([&](ScriptedProcesses& processes) { all = processes.said(kHandle); });
  EXPECT_TRUE(base::eventually([&] { return shown().ends_with(all.substr(all.size() - 20)); }));
  finish(0);
  EXPECT_EQ(code.get(), 0);
  const std::string first = std::to_string(lines - 4) + "\n";
  EXPECT_TRUE(shown().starts_with(first)) << shown().substr(0, 40);
  const auto before = static_cast<std::int64_t>(all.find("\n" + first) + 1);
  const std::int64_t gone = told_gone(warned_.str());
  EXPECT_EQ(before + static_cast<std::int64_t>(shown().size()) + gone,
            static_cast<std::int64_t>(all.size()));
  EXPECT_EQ(gone == 0, lines == 10'000) << gone;
  if (gone == 0) {
    EXPECT_TRUE(all.ends_with(shown()));
  }
}
// Less between two readings than is kept, and more.
INSTANTIATE_TEST_SUITE_P(Lines, LogsOfAFastWriter, testing::Values(10'000, 50'000));

}  // namespace
}  // namespace cli
