#pragma once

#include <iosfwd>

#include "cli/backend.h"
#include "cli/options.h"

namespace cli {

// What a verb touches besides its backend.
struct Terminal {
  std::ostream& out;  // Results, for people or programs.
  std::ostream& err;  // Progress, warnings, failures.
  std::istream& in;
  const base::Clock& clock;
};

// Runs one verb; the exit code says how it ended (cli::Exit).
int run(const Verb& verb, const Options& options, Backend& backend, const Terminal& terminal);

// Prints a failure and gives its exit code.
int fail(const base::Error& error, std::ostream& err);

}  // namespace cli
