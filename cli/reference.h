#pragma once

#include <string>

namespace cli {

// docs/cli.md: every command with its flags, and the exit codes.
std::string reference();

}  // namespace cli
