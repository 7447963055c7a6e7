#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace local_e2b {

// The one process that answers for every sandbox of a server that only keeps books:
// `sandfleet-executor stand-in`, a child of ours that ends with us.
class SharedExecutor {
 public:
  // Blocks until it has said where it answers.
  static base::Result<std::unique_ptr<SharedExecutor>> start(const std::filesystem::path& executor);
  ~SharedExecutor();
  SharedExecutor(const SharedExecutor&) = delete;
  SharedExecutor& operator=(const SharedExecutor&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& envd_version() const { return envd_version_; }
  // Ports of 127.0.0.1, by those that they stand for inside a sandbox.
  const std::map<int, int>& ports() const { return ports_; }
  bool has_ended();

 private:
  SharedExecutor(pid_t pid, base::Fd input) : pid_(pid), input_(std::move(input)) {}
  base::Result<base::Done> understand(const std::string& told);

  const pid_t pid_;
  base::Fd input_;  // It ends when this does.
  bool ended_ = false;
  std::string envd_version_;
  std::map<int, int> ports_;
};

}  // namespace local_e2b
