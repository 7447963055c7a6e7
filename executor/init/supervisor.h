#pragma once

#include <functional>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/fd.h"

// Two processes: a parent that hardly does anything, so that it hardly fails, and a child that does
// the work and is started again when it dies.
namespace executor {

// Exit codes of the program. A child that exits with one of these before it ever said it serves
// takes its parent along: starting it again cannot help.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitLocked = 3;        // Another executor holds the runtime folder.
inline constexpr int kExitBadFolder = 4;     // The runtime folder is not fit.
inline constexpr int kExitBadSecrets = 5;    // What stood on stdin is not the start secrets.
inline constexpr int kExitCannotListen = 6;  // The port is not to be had.

inline constexpr std::size_t kMemoBytesMax = 128u << 10;

// The child's line to its parent: what it says last is what the next child begins with. It travels
// through a socket pair only, so it may be secret.
class Memo {
 public:
  explicit Memo(base::Fd socket, std::string content)
      : socket_(std::move(socket)), content_(std::move(content)) {}
  const std::string& content() const { return content_; }
  void keep(const std::string& content);  // Also says that this child serves.

 private:
  base::Fd socket_;
  std::string content_;
};

// How long to wait before the next start: from 100 ms, doubled with each child that lived less
// than 10 s, to 1 s.
base::Milliseconds restart_delay(int short_lives);

// Runs `work` in a child, again and again, and returns the exit code when that is over: SIGTERM or
// SIGINT came (then the child is told so, and killed 8 s later), or the first child exited with a
// code of its own. As pid 1 it reaps whatever orphan ends here and no signal ends it, but that
// somebody outside has removed the folder that is its root does. Call before any thread exists.
int supervise(const std::string& first_memo, const std::function<int(Memo)>& work);

}  // namespace executor
