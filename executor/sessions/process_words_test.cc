#include "executor/sessions/process_words.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace executor {
namespace {

TEST(ProcessWords, SayWhatASpawnWasAtWhenItFailed) {
  ProcessFailure failure(ProcessFault::kSpawnFailed, "no such program");
  failure.step = ProcessFailure::Step::kProgram;
  failure.error_number = ENOENT;
  EXPECT_EQ(failure_of(failure).code, wire::FailureCode::kSpawnFailed);
  EXPECT_EQ(*failure_of(failure).detail, (base::Json{{"errno", "ENOENT"}, {"step", "exec"}}));
  failure.step = ProcessFailure::Step::kFolder;
  failure.error_number = EACCES;
  EXPECT_EQ(*failure_of(failure).detail, (base::Json{{"errno", "EACCES"}, {"step", "cwd"}}));
  failure.step = ProcessFailure::Step::kResources;
  failure.error_number = 0;
  EXPECT_EQ(*failure_of(failure).detail, (base::Json{{"step", "resources"}}));
  EXPECT_FALSE(failure_of(ProcessFailure(ProcessFault::kBusy, "later")).detail);
}

TEST(ProcessWords, TellACodeOrASignalAndNeverBoth) {
  SubprocessState state{.pid = 5};
  EXPECT_FALSE(state_of(state).exited);
  state.exit = Exit{.code = 3, .signal = std::nullopt};
  EXPECT_TRUE(state_of(state).exited);
  EXPECT_EQ(state_of(state).exit_code, 3);
  EXPECT_FALSE(state_of(state).signal);
  state.exit = Exit{.code = std::nullopt, .signal = SIGSEGV};
  EXPECT_EQ(state_of(state).signal, "SIGSEGV");
  EXPECT_FALSE(state_of(state).exit_code);
}

TEST(ProcessWords, HandASpawnOnWithAFolderByThatOfTheSession) {
  wire::SpawnArgs args{.handle = "0123456789abcdef", .argv = {"true"}, .grace_ms = 1};
  EXPECT_EQ(request_of(args, "/home/user").cwd, "/home/user");
  args.cwd = "inner/x";
  EXPECT_EQ(request_of(args, "/home/user").cwd, "/home/user/inner/x");
  EXPECT_FALSE(request_of(args, "/").terminal);
  args.terminal = wire::TerminalSize{.rows = 40, .columns = 160};
  EXPECT_TRUE(request_of(args, "/").terminal->rows == 40 &&
              request_of(args, "/").terminal->columns == 160);
  args.cwd = "/elsewhere";
  EXPECT_EQ(request_of(args, "/home/user").cwd, "/elsewhere");
}

}  // namespace
}  // namespace executor
