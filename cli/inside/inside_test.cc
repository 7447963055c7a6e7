#include "cli/inside/inside.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "cli/reach/exit_code.h"
#include "cli/testing/inside.h"
#include "libs/base/files.h"
#include "libs/base/testing/eventually.h"

// The verbs that reach into a sandbox, against the serving side of sessions.
namespace cli {
namespace {

using base::Json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Inside, ExecShowsWhatACommandSaysAndEndsAsItDoes) {
  EXPECT_EQ(run({"exec", "--", "say", "3000000"}), 0);
  EXPECT_EQ(shown(), std::string(3'000'000, 'x'));
  EXPECT_EQ(*base::read_file(folder_ / "err"), "said");
  EXPECT_EQ(run({"exec", "--", "code", "3"}), 3);
  EXPECT_EQ(run({"exec", "--", "missing"}), kNoCommand);
  EXPECT_THAT(warned_.str(), HasSubstr("sandfleet: missing: no such file\n"));
}

TEST_F(Inside, ExecPassesOnWhatWasAskedFor) {
  EXPECT_EQ(run({"exec", "-C", "/srv", "-e", "A=1", "-e", "B=", "-e", "PATH", "--permission-mode",
                 "ReadOnly", "--grace", "3", "other/box", "code", "0"}),
            0);
  const wire::Request& request = *processes_.last_spawn();
  const auto args = *wire::from_json<wire::SpawnArgs>(request.args);
  EXPECT_EQ(args.cwd, "/srv");
  EXPECT_THAT(args.env,
              ElementsAre(wire::EnvironmentChange("A", "1"), wire::EnvironmentChange("B", ""),
                          wire::EnvironmentChange("PATH", std::nullopt)));
  EXPECT_EQ(args.grace_ms, 3000);
  EXPECT_EQ(request.permission_mode, wire::Ceiling::kReadOnly);
  EXPECT_EQ(args.in, wire::StdinMode(wire::StdinIgnored{})) << "nobody said -i";
}

TEST_F(Inside, ExecPassesOnStandardInputToItsEnd) {
  auto code = begin({"exec", "-i", "--", "cat"});
  const std::string bytes(300'000, 'y');
  ASSERT_TRUE(base::write_all(in_.second.get(), bytes));
  ASSERT_TRUE(base::write_all(in_.second.get(), std::string("\0end", 4)));
  in_.second.reset();
  EXPECT_EQ(code.get(), 0);
  EXPECT_EQ(shown(), bytes + std::string("\0end", 4));
}

TEST_F(Inside, ExecLeavesStandardInputAloneOtherwise) {
  ASSERT_TRUE(base::write_all(in_.second.get(), "the loop's"));
  EXPECT_EQ(run({"exec", "--", "cat"}), 0);
  std::string left(100, ' ');
  left.resize(static_cast<std::size_t>(::read(in_.first.get(), left.data(), left.size())));
  EXPECT_EQ(left, "the loop's");
}

TEST_F(Inside, AFirstSignalGoesToTheCommand) {
  auto code = begin({"exec", "--", "hang"});
  ASSERT_TRUE(base::eventually([&] { return spawned(); }));
  send(SIGINT);
  EXPECT_EQ(code.get(), 128 + SIGINT);
  EXPECT_THAT(heard(), ElementsAre("SIGINT"));
}

TEST_F(Inside, ASecondSignalEndsTheCommand) {
  auto code = begin({"exec", "--", "stubborn"});
  ASSERT_TRUE(base::eventually([&] { return spawned(); }));
  send(SIGTERM);
  ASSERT_TRUE(base::eventually([&] { return heard().size() == 1; }));
  send(SIGTERM);
  EXPECT_EQ(code.get(), 128 + SIGTERM);
  EXPECT_THAT(heard(), ElementsAre("SIGTERM", "terminate"));
}

TEST_F(Inside, AThirdSignalDoesNotWait) {
  auto code = begin({"exec", "--", "stubborn"});
  ASSERT_TRUE(base::eventually([&] { return spawned(); }));
  server_.go_away();
  for (int i = 0; i < 3; ++i) send(SIGHUP);
  EXPECT_EQ(code.get(), 128 + SIGHUP);
}

TEST_F(Inside, ASignalEndsTheWaitForAgentd) {
  server_.with([](wire::SessionHost& host) { host.shut_down(); });  // It lets nobody in.
  auto code = begin({"exec", "--", "code", "0"});
  ASSERT_TRUE(base::eventually([&] { return server_.links_made() > 0; }));
  send(SIGINT);
  EXPECT_EQ(code.get(), 128 + SIGINT);
  EXPECT_FALSE(spawned());
}

TEST_F(Inside, ALimitEndsTheCommand) {
  EXPECT_EQ(run({"exec", "--timeout", "1", "--", "stubborn"}), kLimitReached);
  EXPECT_THAT(heard(), ElementsAre("terminate"));
  EXPECT_THAT(warned_.str(), HasSubstr("not over after 1s"));
}

TEST_F(Inside, ALongCutIsToldToAPersonAndCostsNothing) {
  auto code = begin({"exec", "-i", "--", "cat"});
  ASSERT_TRUE(base::eventually([&] { return spawned(); }));
  server_.go_away();
  ASSERT_TRUE(base::write_all(in_.second.get(), "typed meanwhile"));
  in_.second.reset();
  const auto end = clock_.now() + base::Milliseconds(2'300);
  ASSERT_TRUE(base::eventually([&] { return clock_.now() > end; }));
  server_.come_back();
  EXPECT_EQ(code.get(), 0);
  EXPECT_EQ(shown(), "typed meanwhile");
  EXPECT_EQ(warned_.str(),
            "sandfleet: no link to the sandbox; it goes on when there is one\n"
            "sandfleet: there is a link again\n");
}

TEST_F(Inside, WhatIsNotKnownIsNotSaidToHaveEnded) {
  auto code = begin({"exec", "--", "stubborn"});
  ASSERT_TRUE(base::eventually([&] { return spawned(); }));
  server_.begin_anew();  // Whoever is there now knows nothing of it.
  EXPECT_EQ(code.get(), kWayLost);
  EXPECT_THAT(warned_.str(), HasSubstr("its output broke off"));
}

TEST_F(Inside, WithoutALinkForTheLeaseTheWayIsLost) {
  lease_seconds_ = 1;
  auto code = begin({"exec", "--", "stubborn"});
  ASSERT_TRUE(base::eventually([&] { return spawned(); }));
  server_.go_away();
  EXPECT_EQ(code.get(), kWayLost);
  EXPECT_THAT(warned_.str(), HasSubstr("what became of it is not known"));
}

TEST_F(Inside, OutputThatCannotBeWrittenEndsTheCommand) {
  out_ = base::Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(run({"exec", "--", "say", "1000000000000"}), kNotBegun);
  EXPECT_THAT(warned_.str(), HasSubstr("No space left"));
  EXPECT_THAT(heard(), ElementsAre("terminate"));
}

TEST_F(Inside, WhatIsBegunForLaterIsEndedWhereItsHandleCannotBeWritten) {
  std::ofstream full("/dev/full");
  static_cast<std::ostream&>(told_).rdbuf(full.rdbuf());
  EXPECT_EQ(run({"exec", "--detach", "--", "stubborn"}), kNotBegun);
  EXPECT_EQ(warned_.str(), "sandfleet: cannot write to standard output, and it was ended\n");
  EXPECT_THAT(heard(), ElementsAre("terminate"));
}

TEST_F(Inside, NothingIsBegunWithoutAgentd) {
  around_.socket = folder_ / "nobody.sock";
  EXPECT_EQ(run({"exec", "--", "code", "0"}), kNotBegun);
  EXPECT_THAT(warned_.str(), HasSubstr("nobody.sock"));
  EXPECT_EQ(run({"ps"}), kFailed);
}

TEST_F(Inside, DetachLeavesACommandToItself) {
  EXPECT_EQ(run({"exec", "-d", "--", "hang"}), 0);
  const std::string handle = told_.str().substr(0, told_.str().find('\n'));
  const auto args = *wire::from_json<wire::SpawnArgs>(processes_.last_spawn()->args);
  EXPECT_EQ(args.handle, handle);
  EXPECT_TRUE(args.detached);
  EXPECT_TRUE(std::holds_alternative<wire::Collected>(args.out));
  EXPECT_TRUE(std::holds_alternative<wire::Collected>(args.err));

  told_.str("");
  EXPECT_EQ(run({"exec", "-d", "-o", "json", "--", "hang"}), 0);
  const Json told = Json::parse(told_.str());
  EXPECT_EQ(told["pid"], 7);
  EXPECT_NE(told["handle"], handle);
  EXPECT_EQ(run({"exec", "-d", "--", "missing"}), kNoCommand);
}

TEST_F(Inside, KillIsDoneWhenWhatItEndedIsForgottenBeforeItAsks) {
  const std::string handle(16, 'a');
  with([&](ScriptedProcesses& processes) { processes.add(handle, "fleeting"); });
  EXPECT_EQ(run({"kill", handle}), 0);
  EXPECT_EQ(told_.str(), "process/" + handle + " ended\n");
  EXPECT_EQ(run({"kill", handle}), kNotFound);
}

TEST_F(Inside, PsAndKillKnowWhatOthersHaveBegun) {
  const std::string handle(16, 'a'), other(16, 'b');
  with([&](ScriptedProcesses& processes) {
    processes.add(handle, "stubborn");
    processes.add(other, "hang");
  });
  EXPECT_EQ(run({"ps"}), 0);
  EXPECT_THAT(told_.str(),
              HasSubstr(handle + "   7     Running   -     -          -          stubborn\n"));
  EXPECT_THAT(told_.str(),
              HasSubstr(other + "   7     Running   -     -          -          hang\n"));

  told_.str("");
  EXPECT_EQ(run({"kill", handle}), 0);
  EXPECT_EQ(told_.str(), "process/" + handle + " ended: Killed(SIGTERM)\n");
  told_.str("");
  EXPECT_EQ(run({"kill", "team/box", other, "-s", "SIGHUP", "--tree"}), 0);
  EXPECT_EQ(told_.str(), "process/" + other + " signalled: SIGHUP\n");
  EXPECT_EQ(run({"kill", other, "-s", "SIGHUP"}), kNotFound) << "nobody is left";
  EXPECT_EQ(run({"kill", "0123456789abcdef"}), kNotFound);

  told_.str("");
  EXPECT_EQ(run({"ps", "-o", "json"}), 0);
  EXPECT_EQ(Json::parse(told_.str())["processes"].size(), 2u);
}

TEST_F(Inside, PsGoesThroughAsManyPagesAsThereAre) {
  constexpr int kMany = 200;  // The server's pages hold one.
  with([&](ScriptedProcesses& processes) {
    for (int i = 0; i < kMany; ++i)
      processes.add("handle-number-" + std::to_string(1000 + i), "hang");
  });
  EXPECT_EQ(run({"ps"}), 0);
  EXPECT_EQ(std::ranges::count(told_.str(), '\n'), kMany + 1);
}

TEST_F(Inside, WhatIsNotUnderstoodReachesNobody) {
  const std::vector<std::vector<std::string>> lines = {
      {"exec"},
      {"exec", "box"},
      {"exec", "box", "--"},
      {"exec", "-e", "=1", "--", "code", "0"},
      {"exec", "-d", "-i", "--", "cat"},
      {"exec", "-d", "--timeout", "3", "--", "cat"},
      {"exec", "a/b/c", "--", "cat"},
      {"exec", "--permission-mode", "All", "--", "cat"},
      {"ps", "box", "other"},
      {"kill"},
      {"attach"},
      {"attach", "box", "0123456789abcdef", "more"},
      {"attach", "a/b/c", "0123456789abcdef"},
      {"logs"},
      {"logs", "--tail", "-2", "0123456789abcdef"},
      {"shell", "a/b/c"},
      {"shell", "-e", "=1"},
      {"shell", "--escape-char", "ab"},
      {"kill", "box", "0123456789abcdef", "more"},
      {"kill", "--tree", "0123456789abcdef"},
      {"kill", "-s", "HUP", "0123456789abcdef"},
  };
  testing::internal::CaptureStderr();
  for (const auto& line : lines) EXPECT_EQ(run(line), kUsage) << testing::PrintToString(line);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(server_.links_made(), 0);
}

}  // namespace
}  // namespace cli
