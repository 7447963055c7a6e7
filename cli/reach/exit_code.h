#pragma once

#include "libs/wire/frames/message.h"
#include "libs/wire/frames/process_operations.h"

// How `exec` ends, as a shell and env(1) would. Pure.
namespace cli {

inline constexpr int kLimitReached = 124;   // As timeout(1).
inline constexpr int kNotBegun = 125;       // What is ours to do failed.
inline constexpr int kNotExecutable = 126;  // The command is there, and cannot be run.
inline constexpr int kNoCommand = 127;
inline constexpr int kSignalled = 128;  // And the signal's number.
inline constexpr int kWayLost = 255;    // What becomes of the command is not known.

// Of a command that has ended.
int exit_code_of(const wire::ProcessState& state);
// Of one that did not begin.
int exit_code_of(const wire::Failure& refusal);

}  // namespace cli
