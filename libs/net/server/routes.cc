#include "libs/net/server/routes.h"

namespace net {

ServedHandler route(std::vector<Route> routes) {
  return [routes = std::move(routes)](const ServedRequest& request) -> ServedAnswer {
    bool path_known = false;
    for (const auto& route : routes) {
      if (route.path != request.path) continue;
      if (route.method == request.method) return route.handle(request);
      path_known = true;
    }
    if (path_known) return {405, "method not allowed\n"};
    return {404, "not found\n"};
  };
}

ServedHandler probe(std::function<std::string()> trouble) {
  return [trouble = std::move(trouble)](const ServedRequest&) -> ServedAnswer {
    const std::string what = trouble();
    if (what.empty()) return {200, "ok\n"};
    return {503, what + "\n"};
  };
}

}  // namespace net
