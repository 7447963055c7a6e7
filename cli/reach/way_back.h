#pragma once

#include <string>

#include "cli/line/options.h"
#include "libs/wire/frames/message.h"

namespace cli {

// What is typed into a POSIX shell to come back to the process of that handle: this program, with
// the flags that it was given. Pure.
std::string way_back(const Options& options, const wire::SandboxName& sandbox,
                     const std::string& handle);

}  // namespace cli
