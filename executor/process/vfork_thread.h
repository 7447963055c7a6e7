#pragma once

#include <linux/sched.h>
#include <sys/types.h>

#include <memory>
#include <optional>

// Of a function that runs in a process which shares our memory, and never returns: what a sanitizer
// noted of its frame would stay noted of our memory.
#define LEAVES_NO_FRAME \
  [[clang::no_sanitize("address", "undefined"), clang::disable_sanitizer_instrumentation]]

namespace executor {

// Begins processes that share our memory until they are programs of their own, as vfork(2) does:
// no page is copied for them, and none has to be taken anew by us afterwards. A thread stands still
// until then, however long it takes, since a program or its folder may be where nobody answers.
class VforkThread {
 public:
  VforkThread();
  ~VforkThread();
  VforkThread(const VforkThread&) = delete;
  VforkThread& operator=(const VforkThread&) = delete;

  // Calls `run` with `argument`, which is kept for it, in a new process with all signals blocked.
  // It LEAVES_NO_FRAME, and only does what POSIX allows between fork and exec. Nothing when the
  // thread still waits for another, or the kernel refuses: then it is to be forked. Returns as soon
  // as the process is there.
  std::optional<pid_t> begin(const clone_args& wanted, void (*run)(void*),
                             std::shared_ptr<void> argument);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace executor
