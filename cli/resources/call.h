#pragma once

#include <string>
#include <string_view>

#include "cli/line/options.h"
#include "cli/line/terminal.h"
#include "cli/resources/backend.h"

namespace cli {

// One verb, as it was typed, and what it touches.
struct Call {
  const Options& options;
  Words words;
  Backend& backend;
  const Terminal& terminal;
  std::string space;

  api::Key key(const std::string& name) const { return {space, name}; }
  // One name is asked for by itself: its reader need not be allowed to see the others.
  Where where() const {
    return {options.all_spaces ? "" : space, words.names.size() == 1 ? words.names[0] : ""};
  }
};

// What a person should know before trusting what is shown.
void warn(const Call& call);
bool is_for_people(const Call& call);
// Why nobody may see to what was asked, for people.
void hint(const Call& call);
// Tells what was not understood, and gives the exit code for that.
int usage(const Call& call, const std::string& what);
base::Error not_found(const Call& call, std::string_view kind, const std::string& name);

}  // namespace cli
