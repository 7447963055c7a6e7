#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/users/users.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace executor {

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
  std::optional<TerminalSize> terminal;
  std::optional<std::string> group;        // A cgroup folder to start in.
  std::optional<std::size_t> descriptors;  // Its soft limit; else as we have it.
};

// Our ends. With a terminal there is only that one.
struct Launched {
  pid_t pid = 0;
  base::Fd pidfd;  // Readable once it has exited; reap it with waitpid(pid).
  base::Fd stdin_end, stdout_end, stderr_end;
  base::Fd terminal;
};

// A new session of its own, no signal blocked or ignored, no descriptor inherited but its own.
// kInvalid: the folder to start in cannot be entered. kRateLimited: no process, pipe or terminal
// to be had just now. A program that cannot be executed is no error here: like a shell, the new
// process says so on its stderr and exits 127 (not found) or 126.
base::Result<Launched> launch(const Launch& wanted);

// Where a shell would look for `program`, in order.
std::vector<std::string> search_path(const std::string& program,
                                     const std::map<std::string, std::string>& env);

}  // namespace executor
