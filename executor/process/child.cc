#include "executor/process/child.h"

#include <sys/wait.h>

namespace executor {

aio::Task<base::Result<base::Done>> until_ended(std::shared_ptr<aio::Stream> exit_notice,
                                                pid_t pid) {
  for (;;) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid == pid) co_return base::Done{};
    CO_CHECK_OK(co_await exit_notice->wait_readable());
  }
}

int reap(pid_t ended) {
  int status = 0;
  ::waitpid(ended, &status, 0);
  return status;
}

}  // namespace executor
