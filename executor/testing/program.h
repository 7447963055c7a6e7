#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "libs/base/fd.h"

namespace executor {

// The real sandfleet-executor as a child of the test, on a free port of 127.0.0.1.
class Program {
 public:
  // `input` is given to its stdin, which is then closed; without one it waits for `give`. `wrapper`
  // is a command before it.
  Program(std::vector<std::string> arguments, const std::optional<std::string>& input,
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
  void give(const std::string& input);  // To its stdin, which is then closed.
  std::string said() const;             // On stderr, so far.
  std::string told() const;             // On stdout, so far.
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  // Reads from one of its streams until its end.
  std::thread read_from(int fd, std::string& into);

  base::Fd input_, output_, errors_;
  mutable std::mutex mutex_;
  std::string said_, told_;
  std::thread error_reader_, output_reader_;
};

}  // namespace executor
