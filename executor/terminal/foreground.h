#pragma once

#include <sys/types.h>

#include <optional>

#include "executor/process/pty.h"
#include "executor/terminal/waiting.h"
#include "libs/base/result.h"

// Who has a terminal now: the process group that its keys and its input go to.
namespace executor {

struct Foreground {
  pid_t group = 0;
  InputWaiting waiting = InputWaiting::kUnknown;  // For what the next write brings.
};

// Nothing when it is no session's, or nobody's turn.
std::optional<pid_t> foreground_group(int master);

// The group, and whether one of its threads waits for input while there is none. Blocks.
std::optional<Foreground> look_at_foreground(const Terminal& terminal);

// SIGINT, SIGQUIT or SIGTSTP to the foreground, as the keys do it but whatever the terminal's mode:
// the kernel looks up the group and sends in one step, and asks for no permission.
bool is_sent_by_terminal(int number);
base::Result<base::Done> send_by_terminal(int master, int number);

}  // namespace executor
