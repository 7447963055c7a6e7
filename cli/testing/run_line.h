#pragma once

#include <string>
#include <vector>

#include "cli/resources/verbs.h"

namespace cli {

// One line as a person types it, the place apart.
inline int run_line(const std::vector<std::string>& line, Backend& backend,
                    const Terminal& terminal) {
  Options options;
  base::Flags flags("sandfleet", kAbout);
  declare(flags, options, [&](const Verb& verb) { return run(verb, options, backend, terminal); });
  std::vector<const char*> words = {"sandfleet"};
  for (const auto& word : line) words.push_back(word.c_str());
  return flags.parse(static_cast<int>(words.size()), words.data()).value_or(-1);
}

}  // namespace cli
