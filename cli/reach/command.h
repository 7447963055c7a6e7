#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/line/options.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/frames/process_operations.h"

// What is to run in a sandbox, as it was typed.
namespace cli {

struct Command {
  std::vector<std::string> argv;
  std::optional<std::string> folder = std::nullopt;
  std::vector<wire::EnvironmentChange> env = {};
  std::optional<wire::Ceiling> permission_mode = std::nullopt;
  base::Seconds grace{10};
  std::optional<base::Seconds> limit = std::nullopt;
  bool input = false;
};

// kInvalid says what is wrong with it.
base::Result<Command> read_command(const Options& options);

// As process.spawn wants it, but for its streams.
wire::SpawnArgs to_spawn(const Command& command);

}  // namespace cli
