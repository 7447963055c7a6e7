#include "executor/subprocess/environment.h"

#include "libs/base/strings.h"

namespace executor {

Environment read_environment(const char* const* entries) {
  Environment environment;
  for (; entries && *entries; ++entries) {
    const std::string_view entry = *entries;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

bool is_withheld(std::string_view name) {
  if (name.starts_with("DSH_")) return true;
  const std::string lower = base::lower(name);
  for (const char* mark : {"key", "password", "secret", "token"})
    if (lower.find(mark) != std::string::npos) return true;
  return false;
}

Environment with_terminal(Environment of_user, const std::string& login_shell) {
  of_user["TERM"] = "xterm-256color";
  if (!login_shell.empty()) of_user.emplace("SHELL", login_shell);
  return of_user;
}

Environment environment_for(const Environment& of_user, const EnvironmentChanges& changes) {
  Environment environment;
  for (const auto& [name, value] : of_user)
    if (!is_withheld(name)) environment.emplace(name, value);
  for (const auto& [name, value] : changes) {
    environment.erase(name);
    if (value) environment.emplace(name, *value);
  }
  return environment;
}

}  // namespace executor
