#include "cli/terminal/local_terminal.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "cli/testing/own_terminal.h"

namespace cli {
namespace {

TEST(LocalTerminal, IsAsItWasAfterWhoeverTookIt) {
  const OwnTerminal here(24, 80);
  {
    LocalTerminal terminal(here.descriptor());
    EXPECT_TRUE(terminal.is_one());
    EXPECT_FALSE(terminal.taken());
    EXPECT_TRUE(terminal.take());
    EXPECT_TRUE(here.is_raw());
  }
  EXPECT_TRUE(here.is_as_before());
}

TEST(LocalTerminal, IsTakenOnce) {
  const OwnTerminal here(24, 80);
  LocalTerminal terminal(here.descriptor());
  EXPECT_TRUE(terminal.take());
  EXPECT_FALSE(terminal.take()) << "it is ours";
  terminal.give_back();
  EXPECT_TRUE(here.is_as_before()) << "and not as we had made it";
  terminal.give_back();
  EXPECT_TRUE(here.is_as_before());
}

// A shell, say, between ^Z and fg, or after SIGSTOP.
TEST(LocalTerminal, IsGivenBackAsOthersHadItLast) {
  const OwnTerminal here(24, 80);
  LocalTerminal terminal(here.descriptor());
  EXPECT_TRUE(terminal.take());
  terminal.give_back();
  here.set_erase('h');
  EXPECT_TRUE(terminal.take());
  EXPECT_TRUE(here.is_raw());
  terminal.give_back();
  EXPECT_EQ(here.erase(), 'h');

  EXPECT_TRUE(terminal.take());
  here.restore();
  EXPECT_TRUE(terminal.take()) << "others have had it, and nobody told";
  EXPECT_TRUE(here.is_raw());
  terminal.give_back();
  EXPECT_TRUE(here.is_as_before());
}

// What a job does with its terminal, before itself in the foreground and then behind its shell.
int job(int descriptor) {
  LocalTerminal terminal(descriptor);
  if (!terminal.take()) return 2;
  ::raise(SIGSTOP);
  terminal.give_back();
  if (!terminal.taken()) return 3;
  ::raise(SIGSTOP);
  terminal.give_back();
  return terminal.taken() ? 4 : 0;
}

// A shell of a session of its own, with that terminal: of the job it says by its exit code what was
// not as it should be. It goes on in the background, and is brought back if `fg`.
int lead(const OwnTerminal& here, bool fg) {
  const int terminal = here.descriptor();
  ::signal(SIGTTOU, SIG_IGN);
  if (::setsid() < 0 || ::ioctl(terminal, TIOCSCTTY, 0) != 0) return 10;
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::tcsetpgrp(terminal, ::getpid());
    ::signal(SIGTTOU, SIG_DFL);
    ::_exit(job(terminal));
  }
  int status = 0;
  const auto stopped_by = [&](int number) {
    return ::waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status) &&
           WSTOPSIG(status) == number;
  };
  if (!stopped_by(SIGSTOP) || !here.is_raw()) return 11;
  ::tcsetpgrp(terminal, ::getpgrp());
  here.set_erase('h');
  ::kill(child, SIGCONT);
  if (!stopped_by(SIGSTOP)) return 12;
  if (!here.is_raw() || here.erase() != 'h') return 13;
  if (fg) ::tcsetpgrp(terminal, child);
  ::kill(child, SIGCONT);
  if (::waitpid(child, &status, WUNTRACED) != child || !WIFEXITED(status)) return 14;
  if (WEXITSTATUS(status) != (fg ? 0 : 4)) return WEXITSTATUS(status);
  return here.is_as_before() == fg ? 0 : 15;
}

TEST(LocalTerminal, IsAnothersInTheBackgroundAndWhoWantsToGiveItBackIsNotStoppedForIt) {
  for (const bool fg : {false, true}) {
    const OwnTerminal here(24, 80);
    const pid_t shell = ::fork();
    if (shell == 0) ::_exit(lead(here, fg));
    int status = 0;
    ASSERT_EQ(::waitpid(shell, &status, 0), shell);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0) << (fg ? "back in the foreground" : "in the background");
  }
}

TEST(LocalTerminal, IsNoneWhereThereIsNone) {
  LocalTerminal terminal(-1);
  EXPECT_FALSE(terminal.is_one());
  EXPECT_FALSE(terminal.take());
  terminal.give_back();
  EXPECT_EQ(terminal.size(), (wire::TerminalSize{}));
}

}  // namespace
}  // namespace cli
