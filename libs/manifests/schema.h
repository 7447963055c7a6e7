#pragma once

#include <string>
#include <vector>

#include "libs/base/json.h"
#include "libs/manifests/judge.h"
#include "libs/manifests/reading.h"

namespace manifests {

// What one value breaks, before it is known where in a file it stands.
struct Violation {
  std::string pointer;  // JSON pointer to the value, or to the missing one.
  std::string rule, cure;
  bool at_key = false;  // It is the name that is wrong, not the value.
  bool operator==(const Violation&) const = default;
};

class Schema {
 public:
  explicit Schema(base::Json json) : json_(std::move(json)), judge_(json_) {}
  const base::Json& json() const { return json_; }
  // Drops nulls and fills defaults in, as the API server does.
  void prepare(base::Json& object) const;
  // Names everything that does not fit; valijson has the last word.
  std::vector<Violation> check(const base::Json& object) const;

 private:
  base::Json json_;
  Judge judge_;
};

// The openAPIV3Schema of that kind's CRD, as crds/ had it at build time; not for Secrets.
const Schema& schema_of(Kind kind);

// The known word closest to a wrong one, or "" when none is close.
std::string nearest(const std::string& wrong, const std::vector<std::string>& known);

}  // namespace manifests
