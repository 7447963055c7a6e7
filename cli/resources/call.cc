#include "cli/resources/call.h"

#include <ostream>

namespace cli {

void warn(const Call& call) {
  const auto warnings = call.backend.warnings();
  if (!warnings) return;  // The answer itself will say why.
  for (const auto& each : *warnings) call.terminal.err << "warning: " << each << "\n";
}

bool is_for_people(const Call& call) {
  return call.options.output != "json" && call.options.output != "yaml";
}

void hint(const Call& call) {
  if (!is_for_people(call)) return;
  if (const auto why = call.backend.idleness(); !why.empty())
    call.terminal.err << "hint: " << why << "\n";
}

int usage(const Call& call, const std::string& what) {
  tell(call.terminal, what);
  return kUsage;
}

base::Error not_found(const Call& call, std::string_view kind, const std::string& name) {
  return base::error(base::ErrorCode::kNotFound, "no ", kind, " \"", name, "\"",
                     kind == "Sandbox" && !call.options.all_spaces ? " in namespace " + call.space
                                                                   : std::string());
}

}  // namespace cli
