#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libs/base/fd.h"

namespace executor {

// The real sandfleet-executor as a child of the test, on a free port of 127.0.0.1.
class Program {
 public:
  // `input` is given to its stdin, which is then closed. `wrapper` is a command before it.
  Program(std::vector<std::string> arguments, const std::string& input,
          const std::vector<std::string>& environment = {},
          const std::vector<std::string>& wrapper = {});
  ~Program();  // Kills it.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  struct Serving {
    int port = 0;
    pid_t pid = 0;  // Of the process that serves.
  };
  // Waits until it has said `count` times that it serves; what it said last.
  Serving wait_until_serving(int count = 1);
  int wait_for_exit();
  std::string said() const;  // On stderr, so far.
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  base::Fd errors_;
  mutable std::mutex mutex_;
  std::string said_;
  std::thread reader_;
};

}  // namespace executor
