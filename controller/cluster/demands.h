#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libs/kube/client.h"
#include "libs/kube/right.h"

// What a controller wants of a cluster before it begins: rights and definitions. One that may
// create and not record would make what nobody knows of; one whose fields are dropped would forget.
namespace controller {

struct Whereabouts {
  std::string own_space;       // Where what is ours is kept.
  std::string space = {};      // Whose Sandboxes are kept; empty: all namespaces'.
  bool needs_fleet_id = true;  // Nobody gave one, so that it is made of the cluster's.
  bool attaches = false;       // People are let in by what the API server says of them.
};

// Without any of these it does not begin. The chart gives them (tests/kubernetes/rights.txt).
std::vector<kube::Right> rights_needed(const Whereabouts& at);
// What goes without them is told by a line in the log: events, and attaching.
struct Wish {
  const char* without;  // "no events will be written"
  kube::Right right;
};
std::vector<Wish> rights_wished(const Whereabouts& at);
// Asks for each of them; names all that are missing.
base::Result<base::Done> check_rights(kube::Client& client, const Whereabouts& at);

// The fields of `ours` that `served` has not, as "status.epoch"; both are OpenAPI schemas. Pure.
std::vector<std::string> missing_fields(const base::Json& ours, const base::Json& served);

inline constexpr int kDefinitionLooksMax = 10;  // A server tells of new definitions a little late.
// That the cluster's definitions have every field of ours; rests between looks while they have not.
base::Result<base::Done> check_definitions(kube::Client& client, const std::function<void()>& rest);

}  // namespace controller
