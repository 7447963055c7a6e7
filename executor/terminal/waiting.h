#pragma once

#include <sys/types.h>

namespace executor {

// Whether somebody waits for input. The greater of two answers is that of both.
enum class InputWaiting {
  kNo,       // Each thread was seen, and none waits for it.
  kUnknown,  // One could not be looked at, or what it waits for cannot be known.
  kYes,      // One was seen to.
};

// A terminal, whatever it is opened as.
struct TerminalFile {
  dev_t device = 0;
  ino_t inode = 0;
};

// Whether a thread of the process sleeps until there is input from `terminal`, which is its
// controlling one: in a read, or in a poll, select or epoll that includes it. Blocks.
InputWaiting waits_for_input(pid_t pid, const TerminalFile& terminal);

}  // namespace executor
