#include "local_e2b/box/spawn.h"

#include <spawn.h>
#include <unistd.h>

#include "libs/base/files.h"

namespace local_e2b {

// posix_spawn: this process may have threads, and between fork and exec only system calls would be
// safe.
base::Result<pid_t> spawn(const std::filesystem::path& program, const char* argument, int input,
                          int output) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  const std::string name = program.filename();
  char* const arguments[] = {const_cast<char*>(name.c_str()), const_cast<char*>(argument), nullptr};
  pid_t pid = 0;
  const int failure = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return base::errno_error("start", program, failure);
  return pid;
}

}  // namespace local_e2b
