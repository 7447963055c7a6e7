#include "cli/reach/command.h"

#include "libs/base/crypto.h"

namespace cli {
namespace {

using base::ErrorCode;

base::Result<wire::EnvironmentChange> read_variable(const std::string& text) {
  const auto equals = text.find('=');
  if (text.empty() || equals == 0)
    return base::error(ErrorCode::kInvalid, "--env \"", text,
                       "\": write NAME=VALUE, or NAME to remove");
  if (equals == std::string::npos) return wire::EnvironmentChange(text, std::nullopt);
  return wire::EnvironmentChange(text.substr(0, equals), text.substr(equals + 1));
}

}  // namespace

base::Result<Command> read_command(const Options& options) {
  if (options.command.empty() || options.command[0].empty())
    return base::error(ErrorCode::kInvalid, "which command? ", options.program,
                       " exec [SANDBOX] -- COMMAND..., or exec SANDBOX COMMAND...");
  if (options.detach && (options.input || options.limit_seconds > 0))
    return base::error(
        ErrorCode::kInvalid,
        "--detach leaves it alone: --stdin and --timeout are for what is waited for");
  Command command{.argv = options.command,
                  .grace = base::Seconds(options.grace_seconds),
                  .input = options.input};
  if (!options.folder.empty()) command.folder = options.folder;
  if (options.limit_seconds > 0) command.limit = base::Seconds(options.limit_seconds);
  if (!options.permission_mode.empty())
    command.permission_mode = wire::ceiling_of(options.permission_mode);
  for (const std::string& variable : options.variables) {
    TRY(auto change, read_variable(variable));
    command.env.push_back(std::move(change));
  }
  return command;
}

wire::SpawnArgs to_spawn(const Command& command) {
  return {.handle = base::random_hex(16),
          .argv = command.argv,
          .cwd = command.folder,
          .env = command.env,
          .grace_ms = base::Milliseconds(command.grace).count()};
}

}  // namespace cli
