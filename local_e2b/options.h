#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/result.h"
#include "local_e2b/faults/faults.h"

namespace local_e2b {

struct Options {
  std::string state;
  std::string listen = "127.0.0.1";
  bool listen_any = false;
  std::int64_t api_port = 0;
  std::int64_t data_port = 0;
  std::string ready_file;
  std::string api_key_file;
  std::string admin_token_file;
  std::string executor;
  std::vector<std::string> lowers;
  std::int64_t max_sandboxes = 100;
  std::int64_t max_run_seconds = 86'400;
  std::int64_t build_threads = 4;
  std::int64_t seed = 1;
  std::vector<std::string> faults;
  bool kill_on_exit = false;
  bool bookkeeping = false;
  std::string log_level = "info";
  std::string log_format = "text";
};

// Fills `options`, or gives the exit code of a program that has nothing more to do.
std::optional<int> parse_options(int argc, const char* const* argv, Options& options);
// What no flag alone can tell: an address that others may reach, faults that cannot be read.
base::Result<std::vector<FaultRule>> check_options(const Options& options);

}  // namespace local_e2b
