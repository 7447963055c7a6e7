#pragma once

#include <span>
#include <string>
#include <vector>

#include "libs/manifests/schema.h"

namespace manifests {

// One x-kubernetes-validations rule of crds/, as a C++ predicate. `old` is null unless the rule
// compares with the version before, and then it never is.
struct Rule {
  Kind kind;
  std::string_view at;       // Pointer to the value it judges; "*" is every item of a list.
  std::string_view message;  // As in the CRD.
  std::string_view field;    // Pointer from there to what the message is about.
  std::string_view cure;
  bool compares = false;
  bool (*holds)(const base::Json& self, const base::Json* old);
};

std::span<const Rule> rules();

// What a valid, defaulted object breaks; with `before`, also what the change breaks.
std::vector<Violation> check_rules(Kind kind, const base::Json& object, const base::Json* before);

}  // namespace manifests
