#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "libs/base/fd.h"
#include "libs/base/reading.h"

namespace executor::testing {

// A process of its own that plays a story: the line that it said, and its wait status.
struct Child {
  std::string said;
  int status = -1;
};

// `story` says its line through the pipe; what it returns is the exit code.
inline Child in_a_child(const std::function<int(base::Fd&)>& story) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const base::Fd out(ends[0]);
  base::Fd in(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(story(in));
  in.reset();
  Child over;
  over.said = base::read_line(out.get(), 1'000, base::Seconds(60));
  ::waitpid(child, &over.status, 0);
  return over;
}

}  // namespace executor::testing
