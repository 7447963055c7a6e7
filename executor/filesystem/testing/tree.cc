#include "executor/filesystem/testing/tree.h"

#include <sys/wait.h>
#include <unistd.h>

namespace executor {

bool ends_abruptly(const std::function<void()>& deed) {
  const pid_t child = ::fork();
  if (child == 0) {
    deed();
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == kAbruptEnd;
}

}  // namespace executor
