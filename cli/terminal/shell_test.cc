#include "cli/terminal/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cli/reach/exit_code.h"
#include "cli/testing/inside.h"
#include "cli/testing/own_terminal.h"
#include "libs/base/testing/eventually.h"

// A terminal before the serving side of sessions, whose processes are played. Real shells:
// tests/integration/shell.py.
namespace cli {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class Shell : public Inside {
 protected:
  Shell() { ::setenv("TERM", "screen", 1); }
  ~Shell() override { EXPECT_TRUE(here_.is_as_before()); }
  int in() const override { return here_.descriptor(); }

  // Until what was typed comes back.
  void see(const std::string& text) {
    EXPECT_TRUE(base::eventually([&] { return shown().ends_with(text); })) << shown();
  }
  std::future<int> begin_shell(std::vector<std::string> words = {"shell"}) {
    auto code = begin(std::move(words));
    EXPECT_TRUE(base::eventually([&] { return here_.is_raw(); }));
    return code;
  }
  // Whether it was heard, in that order behind each other.
  bool heard_last(const std::vector<std::string>& last) {
    const auto all = heard();
    return all.size() >= last.size() && std::equal(last.rbegin(), last.rend(), all.rbegin());
  }
  std::string handle() {
    std::string handle;
    with([&](ScriptedProcesses& processes) {
      handle = wire::from_json<wire::SpawnArgs>(processes.last_spawn()->args)->handle;
    });
    return handle;
  }

  // The server takes what came last for no frame, and ends the session of that link.
  void break_session() {
    server_.with([&](wire::SessionHost& host) {
      host.refuse(static_cast<wire::LinkId>(server_.links_made()), "a gap");
    });
  }

  OwnTerminal here_{33, 111};
  const std::string kHandle = std::string(16, 'a');
};

TEST_F(Shell, IsATerminalOfItsOwnThatNoSessionEnds) {
  auto code = begin_shell({"shell", "-C", "/srv", "-e", "A=1", "team/box", "sh"});
  here_.type("hello");
  see("hello");
  here_.resize(40, 120);
  send(SIGWINCH);
  EXPECT_TRUE(base::eventually([&] { return heard_last({"40x120"}); }));
  here_.type("x");
  EXPECT_EQ(code.get(), 9);
  EXPECT_EQ(shown(), "hellox");
  EXPECT_EQ(warned_.str(), "");
  const auto args = *wire::from_json<wire::SpawnArgs>(processes_.last_spawn()->args);
  EXPECT_TRUE(args.detached);
  EXPECT_EQ(args.terminal, (wire::TerminalSize{33, 111}));
  EXPECT_EQ(args.cwd, "/srv");
  EXPECT_THAT(args.env, ElementsAre(wire::EnvironmentChange("TERM", "screen"),
                                    wire::EnvironmentChange("A", "1")));
  EXPECT_THAT(args.argv, ElementsAre("sh"));
}

TEST_F(Shell, IsTheLoginShellWithoutACommand) {
  EXPECT_EQ(read_shell({})->argv.back(), R"(exec "${SHELL:-/bin/sh}" -l)");
  Options options;
  options.command = {"htop"};
  EXPECT_THAT(read_shell(options)->argv, ElementsAre("htop"));
}

TEST_F(Shell, GoesOnForWhoLeavesAndComesBack) {
  auto code = begin_shell({"shell", "--", "sh"});
  here_.type("begun\r");
  see("begun\r");
  here_.type("kept\r~.");
  EXPECT_EQ(code.get(), 0);
  EXPECT_TRUE(here_.is_as_before());
  const std::string way = "come back by: sandfleet attach team/box " + handle() + "\n";
  EXPECT_THAT(warned_.str(), EndsWith(way));
  EXPECT_THAT(heard(), Not(testing::Contains("terminate")));

  here_.resize(20, 90);
  code = begin_shell({"attach", "team/box", handle()});
  EXPECT_TRUE(base::eventually([&] { return heard_last({"20x90"}); })) << "its size is ours now";
  here_.type("x");
  EXPECT_EQ(code.get(), 9);
  EXPECT_THAT(shown(), EndsWith("begun\rkept\rx")) << "what was typed last had gone out";
}

TEST_F(Shell, TakesNoWordForItselfWhereNoneIsToBe) {
  auto code = begin_shell({"shell", "--escape-char", "none", "--", "sh"});
  here_.type("~.");
  see("~.");
  here_.type("x");
  EXPECT_EQ(code.get(), 9);
}

TEST_F(Shell, OutlivesItsSession) {
  auto code = begin_shell({"shell", "--", "sh"});
  here_.type("before ");
  see("before ");
  server_.begin_anew();  // Whoever is there now knows no session of before.
  here_.type("lost? ");
  ASSERT_TRUE(base::eventually([&] {
    here_.type("y");  // What was typed in between may be lost, as that is told nowhere.
    return shown().ends_with("y");
  })) << shown()
      << warned_.str() << testing::PrintToString(heard());
  here_.type("x");
  EXPECT_EQ(code.get(), 9);
  EXPECT_THAT(shown(), testing::StartsWith("before "));
}

TEST_F(Shell, TellsTheWayBackWhenItsSessionWasBroken) {
  auto code = begin_shell({"shell", "--", "sh"});
  here_.type("begun\r");
  see("begun\r");
  break_session();
  EXPECT_EQ(code.get(), kWayLost);
  EXPECT_THAT(warned_.str(),
              EndsWith("come back by: sandfleet attach team/box " + handle() + "\n"));
  EXPECT_THAT(heard(), Not(testing::Contains("terminate")));
}

TEST_F(Shell, IsAttachedToWhereItMayHaveBegunInASessionThatWasBroken) {
  with([](ScriptedProcesses& processes) { processes.hold_spawns(true); });
  auto code = begin({"shell", "--", "sh"});
  ASSERT_TRUE(base::eventually([&] { return spawned(); }));
  with([its = handle()](ScriptedProcesses& processes) { processes.add_detached(its, "sh"); });
  break_session();
  ASSERT_TRUE(base::eventually([&] { return here_.is_raw() || warned_.str() != ""; }));
  here_.type("x");
  EXPECT_EQ(code.get(), 9) << warned_.str() << testing::PrintToString(heard());
}

TEST_F(Shell, LeavesWhenThereIsNoLinkForTheLease) {
  lease_seconds_ = 1;
  auto code = begin_shell({"shell", "--", "sh"});
  server_.go_away();
  EXPECT_EQ(code.get(), kWayLost);
  EXPECT_THAT(warned_.str(), HasSubstr("there was no link for as long as"));
  EXPECT_THAT(warned_.str(), HasSubstr("sandfleet attach team/box "));
}

TEST_F(Shell, TellsNoWayBackWhereNobodyIsLetInAnyMore) {
  auto code = begin_shell({"shell", "--", "sh"});
  become_another();
  EXPECT_EQ(code.get(), kWayLost);
  EXPECT_THAT(warned_.str(), HasSubstr("what became of it is not known: token refused"));
  EXPECT_THAT(warned_.str(), Not(HasSubstr("come back")));
}

TEST_F(Shell, GivesTheTerminalBackWhateverEndsIt) {
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) {
    auto code = begin_shell({"shell", "--", "sh"});
    send(number);
    EXPECT_EQ(code.get(), 128 + number);
    EXPECT_TRUE(here_.is_as_before());
  }
  auto code = begin_shell({"shell", "--", "sh"});
  here_.hang_up();
  EXPECT_EQ(code.get(), 128 + SIGHUP);
  EXPECT_THAT(heard(), Not(testing::Contains("terminate"))) << "all of them go on";
  here_ = OwnTerminal(24, 80);
}

TEST_F(Shell, IsPaintedAnewOnceWhenOthersHaveHadTheTerminal) {
  auto code = begin_shell({"shell", "--", "sh"});
  with([its = handle()](ScriptedProcesses& processes) { processes.write(its, "\x1b[?25l"); });
  see("\x1b[?25l");
  send(SIGCONT);  // Nobody has had it.
  here_.type("y");
  see("y");
  EXPECT_THAT(heard(), Not(testing::Contains("32x111")));
  here_.restore();
  send(SIGCONT);
  send(SIGCONT);
  EXPECT_TRUE(base::eventually([&] { return here_.is_raw(); }));
  EXPECT_TRUE(base::eventually([&] { return heard_last({"32x111", "33x111"}); }));
  here_.type("x");
  EXPECT_EQ(code.get(), 9);
  EXPECT_THAT(heard(), ElementsAre("32x111", "33x111"));
  EXPECT_EQ(shown(), "\x1b[?25ly\x1b[?25lx") << "its modes are set again, once";
}

TEST_F(Shell, IsNotLeftWhereNobodyKnowsOfIt) {
  with([](ScriptedProcesses& processes) { processes.hold_spawns(true); });
  auto code = begin({"shell", "--", "sh"});
  ASSERT_TRUE(base::eventually([&] { return spawned(); }));
  send(SIGINT);
  EXPECT_TRUE(base::eventually([&] { return heard_last({"cancel"}); }));
  with([](ScriptedProcesses& processes) { processes.hold_spawns(false); });
  EXPECT_EQ(code.get(), 128 + SIGINT);
  EXPECT_TRUE(base::eventually([&] { return heard_last({"terminate"}); }));
}

TEST_F(Shell, BelongsToWhoCameLast) {
  auto first = begin_shell({"shell", "--", "sh"});
  with([its = handle()](ScriptedProcesses& processes) { processes.take_over(its); });
  EXPECT_EQ(first.get(), kWayLost);
  EXPECT_THAT(warned_.str(), HasSubstr("somebody else has attached to it"));
  EXPECT_THAT(warned_.str(), HasSubstr("sandfleet attach team/box "));
}

TEST_F(Shell, ShowsAgainWhatIsKeptButAsksNothingAgain) {
  with([&](ScriptedProcesses& processes) {
    processes.add_detached(kHandle, "sh");
    processes.write(kHandle, "gone\r\nseen\x1b[6n\x1b[?1049h\x1b[?25l");
    processes.keep_from(kHandle, 6);
  });
  auto code = begin_shell({"attach", kHandle});
  see("seen\x1b[?1049h\x1b[?25l");
  // What is kept begins somewhere: who paints the screen paints it anew.
  EXPECT_TRUE(base::eventually([&] { return heard_last({"32x111", "33x111"}); }));
  with([&](ScriptedProcesses& processes) { processes.write(kHandle, "new\x1b[6n"); });
  see("new\x1b[6n");
  here_.type("\r~.");
  EXPECT_EQ(code.get(), 0);
  EXPECT_THAT(shown(), EndsWith("\x1b[?25h\x1b[?1049l")) << "the screen is ours again";
}

TEST_F(Shell, LooksWhetherAnybodyIsThereWhenNothingIsShown) {
  with([&](ScriptedProcesses& processes) { processes.add_detached(kHandle, "sh"); });
  auto code = begin_shell({"attach", kHandle});
  with([](ScriptedProcesses& processes) { processes.be_silent(true); });
  here_.type("y");
  EXPECT_TRUE(base::eventually([&] { return heard_last({"look"}); }));
  with([](ScriptedProcesses& processes) { processes.be_silent(false); });
  see("y");
  here_.type("x");
  EXPECT_EQ(code.get(), 9);
}

TEST_F(Shell, OfOneThatIsOverIsWhatItShowedAndItsEnd) {
  with([&](ScriptedProcesses& processes) {
    processes.add_detached(kHandle, "sh");
    processes.write(kHandle, "all");
    processes.finish(kHandle, 4);
  });
  EXPECT_EQ(run({"attach", kHandle}), 4);
  EXPECT_EQ(shown(), "all");
}

TEST_F(Inside, AShellNeedsATerminal) {
  EXPECT_EQ(run({"shell", "--", "sh"}), kNotBegun);
  EXPECT_THAT(warned_.str(), HasSubstr("exec -i"));
  const std::string handle(16, 'a');
  with([&](ScriptedProcesses& processes) { processes.add_detached(handle, "sh"); });
  EXPECT_EQ(run({"attach", handle}), kNotBegun);
  EXPECT_THAT(warned_.str(), HasSubstr("sandfleet logs"));
  EXPECT_FALSE(spawned());
}

}  // namespace
}  // namespace cli
