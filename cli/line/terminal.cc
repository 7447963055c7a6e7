#include "cli/line/terminal.h"

#include <ostream>

namespace cli {

using base::ErrorCode;

void tell(const Terminal& terminal, const std::string& what) {
  terminal.err << "sandfleet: " << what << "\n" << std::flush;
}

int fail(const base::Error& error, std::ostream& err) {
  err << "sandfleet: " << error.message << "\n";
  switch (error.code) {
    case ErrorCode::kNotFound:
      return kNotFound;
    case ErrorCode::kConflict:
    case ErrorCode::kDenied:
      return kRefused;
    default:
      return kFailed;
  }
}

int refuse(const Verb& verb, const Options& options, const base::Error& why, std::ostream& err) {
  err << "sandfleet: " << why.message << "\nRun '" << options.program << " " << verb.name
      << " --help' for its flags.\n";
  return kUsage;
}

}  // namespace cli
