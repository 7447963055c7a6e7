#include "local_e2b/control/teams.h"

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace local_e2b {

namespace fs = std::filesystem;

base::Result<Teams> Teams::parse(std::string_view text) {
  Teams teams;
  int number = 0;
  for (const auto& raw : base::split(text, '\n')) {
    ++number;
    const std::string line(base::trim(raw.substr(0, raw.find('#'))));
    if (line.empty()) continue;
    const auto space = line.find_first_of(" \t");
    const std::string team = space == std::string::npos ? "default" : line.substr(0, space);
    const std::string key(space == std::string::npos ? line
                                                     : std::string(base::trim(line.substr(space))));
    if (key.find_first_of(" \t") != std::string::npos)
      return base::error(base::ErrorCode::kInvalid, "API keys, line ", std::to_string(number),
                         ": write KEY or TEAM KEY");
    teams.keys_.emplace_back(team, key);
  }
  if (teams.keys_.empty())
    return base::error(base::ErrorCode::kInvalid, "there is no API key in it; write one a line");
  return teams;
}

base::Result<Teams> Teams::read(const fs::path& file) {
  TRY(const std::string text, base::read_file(file, 1u << 20));
  auto teams = parse(text);
  if (teams) return teams;
  return base::error(teams.error().code, file.string(), ": ", teams.error().message);
}

base::Result<Teams> Teams::read_or_make(const fs::path& file) {
  std::error_code failed;
  if (!fs::exists(file, failed))
    CHECK_OK(base::write_file_atomically(file, "e2b_" + base::random_hex(20) + "\n", 0600));
  return read(file);
}

std::optional<std::string> Teams::team_of(std::string_view key) const {
  std::optional<std::string> found;
  for (const auto& [team, known] : keys_)
    if (base::equal_secrets(known, key)) found = team;
  return found;
}

}  // namespace local_e2b
