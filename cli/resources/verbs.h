#pragma once

#include "cli/line/options.h"
#include "cli/line/terminal.h"
#include "cli/resources/backend.h"

namespace cli {

// Runs one verb; the exit code says how it ended (cli::Exit).
int run(const Verb& verb, const Options& options, Backend& backend, const Terminal& terminal);

}  // namespace cli
