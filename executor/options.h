#pragma once

#include <cstdint>
#include <string>

#include "libs/wire/admin.h"

namespace executor {

struct EnvdOptions {
  bool chosen = false;
  std::int64_t port = 49983;
  std::string listen = "0.0.0.0";
  std::string etc = "/etc";
  std::string cgroup;  // Empty: found by itself.
};

struct RunOptions {
  std::int64_t port = wire::kExecutorPort;
  std::string listen = "0.0.0.0";
  std::string runtime_folder;
  std::string log_file;  // Empty: stderr.
  std::string cgroup;    // Empty: found by itself.
};

// Parses the command line and runs what it asks for; the exit code.
int parse_and_run(int argc, const char* const* argv);

}  // namespace executor
