#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/result.h"

namespace local_e2b {

// Who may call: API keys, each of a team. A team sees its own sandboxes only.
class Teams {
 public:
  // One key a line, or "TEAM KEY"; '#' begins a comment. A key without a team is of team "default".
  static base::Result<Teams> parse(std::string_view text);
  static base::Result<Teams> read(const std::filesystem::path& file);
  // Reads `file`, after writing one new key into it if it is not there.
  static base::Result<Teams> read_or_make(const std::filesystem::path& file);

  std::optional<std::string> team_of(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, std::string>> keys_;  // Team, key.
};

}  // namespace local_e2b
