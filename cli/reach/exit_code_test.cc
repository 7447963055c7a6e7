#include "cli/reach/exit_code.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using Code = wire::FailureCode;

wire::Failure not_spawned(const char* error, const char* step) {
  auto failure = wire::failure(Code::kSpawnFailed, "it could not be started");
  failure.detail = base::Json{{"errno", error}, {"step", step}};
  return failure;
}

TEST(ExitCode, OfACommandIsItsOwnOrItsSignals) {
  const auto exited = [](std::int64_t code) {
    return exit_code_of(wire::ProcessState{.pid = 7, .exited = true, .exit_code = code});
  };
  const auto killed = [](const char* signal) {
    return exit_code_of(wire::ProcessState{.pid = 7, .exited = true, .signal = signal});
  };
  EXPECT_EQ(exited(0), 0);
  EXPECT_EQ(exited(1), 1);
  EXPECT_EQ(exited(255), 255);
  EXPECT_EQ(killed("SIGINT"), 130);
  EXPECT_EQ(killed("SIGKILL"), 137);
  EXPECT_EQ(killed("SIGPIPE"), 141);
  EXPECT_EQ(killed("SIGOTHER"), kWayLost);
  EXPECT_EQ(exit_code_of(wire::ProcessState{}), kWayLost) << "nothing is known of it";
}

TEST(ExitCode, OfWhatDidNotBeginTellsWhy) {
  EXPECT_EQ(exit_code_of(not_spawned("ENOENT", "exec")), kNoCommand);
  EXPECT_EQ(exit_code_of(not_spawned("EACCES", "exec")), kNotExecutable);
  EXPECT_EQ(exit_code_of(not_spawned("ENOEXEC", "exec")), kNotExecutable);
  EXPECT_EQ(exit_code_of(not_spawned("ENOENT", "cwd")), kNotBegun);
  EXPECT_EQ(exit_code_of(not_spawned("EMFILE", "resources")), kNotBegun);
  EXPECT_EQ(exit_code_of(wire::failure(Code::kSpawnFailed, "")), kNotBegun);
  EXPECT_EQ(exit_code_of(wire::failure(Code::kExecutableNotFound, "")), kNoCommand);
  EXPECT_EQ(exit_code_of(wire::failure(Code::kDenied, "")), kNotBegun);
  EXPECT_EQ(exit_code_of(wire::failure(Code::kConfinementUnavailable, "")), kNotBegun);
  EXPECT_EQ(exit_code_of(wire::failure(Code::kOutcomeUnknown, "")), kWayLost);
}

}  // namespace
}  // namespace cli
