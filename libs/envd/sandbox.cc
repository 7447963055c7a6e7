#include "libs/envd/sandbox.h"

#include <algorithm>

#include "libs/base/certificate.h"

namespace envd {
namespace {

constexpr std::string_view kSharedHost = "sandbox.";

std::size_t place_of_host(const std::string& url) {
  const std::size_t scheme = url.find("://");
  return scheme == std::string::npos ? 0 : scheme + 3;
}

// Puts a label before the host: "https://example.dev:8443/x" -> "https://LABEL.example.dev:8443/x".
std::string with_label(const std::string& url, const std::string& label) {
  const std::size_t host = place_of_host(url);
  return url.substr(0, host) + label + "." + url.substr(host);
}

}  // namespace

DataPlane in_domain(const DataPlane& plane, const std::optional<std::string>& domain) {
  if (!domain || !base::is_host_name(*domain)) return plane;
  const std::size_t from = place_of_host(plane.url);
  const std::size_t to = std::min(plane.url.find_first_of(":/", from), plane.url.size());
  const bool shared = plane.url.compare(from, kSharedHost.size(), kSharedHost) == 0;
  std::string host;
  if (plane.routing == Routing::kSubdomain)
    host = *domain;
  else if (plane.routing == Routing::kHeader && shared)
    host = std::string(kSharedHost) + *domain;
  else
    return plane;
  return {plane.url.substr(0, from) + host + plane.url.substr(to), plane.routing};
}

Route route_to(const DataPlane& plane, const std::string& sandbox_id, int port,
               const std::optional<std::string>& envd_access_token,
               const std::optional<std::string>& traffic_access_token) {
  Route route;
  const std::string url = net::base_url(plane.url);
  switch (plane.routing) {
    case Routing::kSubdomain:
      route.url = with_label(url, std::to_string(port) + "-" + sandbox_id);
      break;
    case Routing::kHeader:
      route.url = url;
      route.headers.add("E2b-Sandbox-Id", sandbox_id);
      route.headers.add("E2b-Sandbox-Port", std::to_string(port));
      break;
    case Routing::kPathPrefix:
      route.url = url + "/" + sandbox_id + "/" + std::to_string(port);
      break;
  }
  // envd's own token opens everything inside, so no other port ever sees it.
  if (envd_access_token && port == kEnvdPort)
    route.headers.add("X-Access-Token", *envd_access_token);
  if (traffic_access_token) route.headers.add("E2b-Traffic-Access-Token", *traffic_access_token);
  return route;
}

}  // namespace envd
