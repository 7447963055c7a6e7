#pragma once

#include <cstddef>

namespace base {

// How many descriptors this process may have open at once: the soft limit, which programs that it
// starts inherit.
struct DescriptorLimit {
  std::size_t before = 0, now = 0;
};
// Raises the soft limit as far as the hard one allows.
DescriptorLimit raise_descriptor_limit();
// Only a system call, so that it may stand between fork and exec. The hard limit stays.
void set_descriptor_limit(std::size_t soft);

// Before anything is opened: the number of a standard descriptor that is closed (`>&-`) would else
// be the next socket's or file's, and that would get what is meant for the other. Reads and writes
// fail with EBADF as before.
void hold_standard_descriptors();

}  // namespace base
