#pragma once

#include <string>
#include <vector>

#include "libs/base/json.h"

namespace yaml {

// One thing that is wrong with a YAML file: where it stands, which rule it breaks, and what to do.
struct Problem {
  std::string file;
  int line = 0, column = 0;  // Counted from 1; 0: the file as a whole.
  std::string field;         // "spec.keepAlive.timeoutSeconds"; empty: the document as a whole.
  std::string rule;          // "must be at least 15, is 3"
  std::string cure;          // "raise it to 15 or more"
  bool operator==(const Problem&) const = default;
};

// "a.yaml:7:21: spec.keepAlive.timeoutSeconds: must be at least 15, is 3; raise it to 15 or more"
std::string to_text(const Problem& problem);
std::string to_text(const std::vector<Problem>& problems);  // One a line.
base::Json to_json(const Problem& problem);
Problem problem_from_json(const base::Json& json);

}  // namespace yaml
