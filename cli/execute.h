#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/verbs.h"
#include "libs/base/result.h"
#include "libs/wire/client/connection.h"
#include "libs/wire/frames/process_operations.h"

// One command in a sandbox, as if it ran here: bytes both ways, signals, the end.
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

// This process's own side.
struct Ends {
  int in = 0, out = 1, err = 2;
  int signals = -1;      // Of hold_signals.
  bool watched = false;  // By a person, who wants to know why nothing moves.
};

// As process.spawn wants it, but for its streams.
wire::SpawnArgs to_spawn(const Command& command);

// To its end; the exit code is the command's own, or one of exit_code.h.
int execute(wire::Connection& connection, const Command& command, const Ends& ends,
            const Terminal& terminal);

}  // namespace cli
