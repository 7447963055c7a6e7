#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "executor/users/users.h"
#include "libs/base/result.h"

namespace executor {

// Without ".", "..", doubled or trailing slashes; links are not looked at.
std::string clean_path(const std::filesystem::path& path);

// Whether `path` is `folder` or below it, by whole names. Both are absolute and clean.
bool is_within(std::string_view path, std::string_view folder);

// The absolute, clean form of a path as a caller spells it: absolute, "~" or "~/x" (the user's
// home), relative to that home, or empty: `default_workdir` when it is set, else the home. "~other"
// is kInvalid, and so is a path with a NUL in it.
base::Result<std::string> resolve_path(std::string_view path, const User& user,
                                       std::string_view default_workdir);

}  // namespace executor
