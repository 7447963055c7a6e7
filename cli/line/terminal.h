#pragma once

#include <iosfwd>
#include <string>

#include "cli/line/options.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace cli {

// What every verb speaks to.
struct Terminal {
  std::ostream& out;  // Results, for people or programs.
  std::ostream& err;  // Progress, warnings, failures.
  std::istream& in;
  const base::Clock& clock;
};

// A line about what this program does.
void tell(const Terminal& terminal, const std::string& what);

// Prints a failure and gives its exit code.
int fail(const base::Error& error, std::ostream& err);

// Says what was not understood, and gives the exit code for that.
int refuse(const Verb& verb, const Options& options, const base::Error& why, std::ostream& err);

}  // namespace cli
