#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/base/json.h"
#include "libs/base/result.h"

namespace executor {

// The level of envd's API that is served; clients choose what they use by it.
inline constexpr std::string_view kEnvdVersion = "0.6.4";

// What POST /init told this daemon.
struct EnvdSettings {
  std::optional<std::string> access_token;  // Secret. Set once.
  std::map<std::string, std::string> env;
  std::optional<std::string> default_user;
  std::string default_workdir;
  std::optional<base::WallTime> told_at;  // The timestamp of the newest /init.
};

// Applies the body of one /init. kDenied: another token is set. kInvalid: a field of the wrong
// type. An older or equal timestamp leaves the settings as they are. "env" is replaced as a whole.
base::Result<EnvdSettings> apply_init(const EnvdSettings& settings, const base::Json& body);

// How a restarted daemon gets its settings back.
base::Json to_json(const EnvdSettings& settings);
EnvdSettings settings_from_json(const base::Json& json);

// The variables of a new command: later layers win.
std::map<std::string, std::string> layered(
    std::initializer_list<const std::map<std::string, std::string>*> layers);

}  // namespace executor
