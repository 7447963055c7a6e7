#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libs/net/server/http_server.h"

namespace net {

struct Route {
  std::string method, path;  // The path is matched whole.
  ServedHandler handle;
};

// Answers 404 for a path that is nowhere, 405 for a method that its path does not have.
ServedHandler route(std::vector<Route> routes);

// A probe: 200 "ok" while `trouble` gives nothing, else 503 with what it says.
ServedHandler probe(std::function<std::string()> trouble);

}  // namespace net
