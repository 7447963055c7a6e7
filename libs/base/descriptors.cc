#include "libs/base/descriptors.h"

#include <sys/resource.h>

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

}  // namespace base
