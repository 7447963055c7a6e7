#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/flags.h"

namespace controller {

// What people can set; the defaults are what --help shows.
struct Options {
  std::string manifests, state;
  std::string fleet_id;
  bool claim_moved_manifests = false;
  std::string executor;
  std::vector<std::string> api_key_files;  // "[PROVIDER=]PATH"
  std::string metrics_address = "127.0.0.1";
  std::int64_t metrics_port = 0;
  std::string ready_file;
  std::int64_t workers = 8;
  std::int64_t operations = 48;
  std::int64_t poll_seconds = 30;
  std::int64_t sweep_seconds = 60;
  std::int64_t grace_seconds = 120;
  std::string log_level = "info";
  std::string log_format = "text";
};

void declare(base::Flags& flags, Options& options);

// Fills `options` from the command line; a number: end with that exit code.
std::optional<int> parse_options(int argc, const char* const* argv, Options& options);

}  // namespace controller
