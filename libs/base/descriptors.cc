#include "libs/base/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace base {

DescriptorLimit raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::size_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  const bool raised = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
  return {before, raised ? limit.rlim_max : before};
}

void set_descriptor_limit(std::size_t soft) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(soft, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// The lowest that is free is the one that is given out.
void hold_standard_descriptors() {
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(each, F_GETFD) < 0) ::open("/dev/null", each == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace base
