#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/users/users.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace executor {

class VforkThread;

struct TerminalSize {
  std::uint16_t columns = 80, rows = 24;
};

struct Launch {
  std::vector<std::string> argv;  // argv[0] without a slash is looked up in the PATH of `env`.
  std::map<std::string, std::string> env;
  std::string cwd;
  User user;
  bool switch_user = false;
  bool keep_stdin = true;  // Else it reads the end at once.
  bool discard_stdout = false, discard_stderr = false;
  // Like a shell: a file without #! is a script for /bin/sh, and of a program that cannot be
  // executed the new process says so on its stderr and exits 127 (not found) or 126. Else the
  // launch fails.
  bool like_a_shell = true;
  std::optional<TerminalSize> terminal;
  std::optional<std::string> group;        // A cgroup folder to start in.
  bool under_reaper = false;               // See reaper.h.
  std::optional<std::size_t> descriptors;  // Its soft limit; else as we have it.
  std::shared_ptr<const base::Fd>
      confinement;  // As make_confinement() made it; none or empty: free.
};

// Our ends. With a terminal there is only that one.
struct Launched {
  pid_t pid = 0;   // Of the reaper, where there is one.
  base::Fd pidfd;  // Readable once it has exited; reap it with waitpid(pid).
  base::Fd stdin_end, stdout_end, stderr_end;
  base::Fd terminal;
  base::Fd reaper;  // Our end of its socket.
  base::Fd report;  // Ends when the program has begun; a LaunchFailure comes before if it has not.
};

enum class LaunchStep : int {
  kGroup,
  kTerminal,
  kDescriptors,
  kUser,
  kFolder,
  kConfinement,
  kProgram,
};
struct LaunchFailure {
  LaunchStep step;
  int error_number;
};
base::Error describe(const LaunchFailure& failure, const Launch& wanted);

// A new session of its own, no signal blocked or ignored, no descriptor inherited but its own.
// kRateLimited: no process, pipe or terminal to be had just now. The caller reads the report and
// reaps the process, also when the launch failed. By `vforks` where there are some and `wanted` has
// a group, else by a fork.
base::Result<Launched> begin_launch(const Launch& wanted, VforkThread* vforks = nullptr);
// The same, and waits for the program to begin; a failed one is reaped. kInvalid: the folder to
// start in cannot be entered.
base::Result<Launched> launch(const Launch& wanted);

// Where a shell would look for `program`, in order.
std::vector<std::string> search_path(const std::string& program,
                                     const std::map<std::string, std::string>& env);

}  // namespace executor
