#include "executor/init/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/testing/scratch.h"

namespace executor {
namespace {

// Runs a supervisor in a process of its own, as it wants to be alone; its exit code.
int exit_code_of(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Supervisor, StartsAKilledChildAgainWithWhatItLastKept) {
  const int code = exit_code_of([] {
    return supervise("1", [](Memo memo) {
      if (memo.content() == "1") {
        memo.keep("2");
        ::raise(SIGKILL);
      }
      if (memo.content() == "2") {
        memo.keep("3");
        ::_exit(0);
      }
      // The parent that is to be ended is this child's.
      if (memo.content() == "3") ::kill(::getppid(), SIGTERM);
      for (;;) ::pause();
      return 0;
    });
  });
  EXPECT_EQ(code, 0);
}

TEST(Supervisor, LetsItsChildTidyUpWhenItIsToldToStop) {
  Scratch folder;
  const std::string note = folder / "note";
  const int code = exit_code_of([&note] {
    return supervise("", [&note](Memo) {
      sigset_t told;
      ::sigemptyset(&told);
      ::sigaddset(&told, SIGTERM);
      ::sigprocmask(SIG_BLOCK, &told, nullptr);
      ::kill(::getppid(), SIGTERM);
      int number = 0;
      ::sigwait(&told, &number);
      return base::write_file_atomically(note, "tidied up", 0600) ? 0 : 1;
    });
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(folder.read("note"), "tidied up");
}

TEST(Supervisor, GivesUpWhenTheFirstChildCannotServe) {
  EXPECT_EQ(exit_code_of([] { return supervise("", [](Memo) { return kExitCannotListen; }); }),
            kExitCannotListen);
}

TEST(Supervisor, WaitsLongerAfterEachShortLifeButNeverOverASecond) {
  EXPECT_EQ(restart_delay(0), base::Milliseconds(100));
  EXPECT_EQ(restart_delay(1), base::Milliseconds(100));
  EXPECT_EQ(restart_delay(2), base::Milliseconds(200));
  EXPECT_EQ(restart_delay(4), base::Milliseconds(800));
  EXPECT_EQ(restart_delay(5), base::Milliseconds(1000));
  EXPECT_EQ(restart_delay(1000), base::Milliseconds(1000));
}

}  // namespace
}  // namespace executor
