#include "agentd/dial/dial.h"

#include <algorithm>

#include "libs/base/certificate.h"
#include "libs/base/strings.h"

namespace agentd {
namespace {

base::Error not_a_url(std::string_view url) {
  return base::error(base::ErrorCode::kInvalid, "not a URL of an executor: ", url);
}

// "host", "host:80", "[::1]" or "[::1]:80" into the place.
bool take_authority(std::string_view authority, Place& place) {
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return false;
  const std::size_t colon = authority.find(':', bracket);
  std::string_view host = authority.substr(0, colon);
  const bool v6 = host.starts_with('[');
  if (v6 && !host.ends_with(']')) return false;
  if (v6) host = host.substr(1, host.size() - 2);
  place.host = base::lower(host);
  if (v6 && (place.host.find(':') == std::string::npos || !base::is_ip_address(place.host)))
    return false;
  place.port = place.tls ? 443 : 80;
  if (colon == std::string_view::npos) return true;
  const auto port = base::parse_integer(authority.substr(colon + 1));
  if (!port || *port < 1 || *port > 65'535) return false;
  place.port = static_cast<int>(*port);
  return true;
}

}  // namespace

std::string Place::authority() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  const bool usual = port == (tls ? 443 : 80);
  return usual ? name : name + ":" + std::to_string(port);
}

base::Result<Place> place_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return not_a_url(url);
  const std::string name = base::lower(url.substr(0, scheme));
  if (name != "http" && name != "https") return not_a_url(url);
  Place place{.tls = name == "https"};
  std::string_view rest = url.substr(scheme + 3);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  place.path = rest.substr(slash);
  while (place.path.ends_with('/')) place.path.pop_back();
  if (!take_authority(rest.substr(0, slash), place)) return not_a_url(url);
  const bool odd = place.host.find_first_of("@[]?#% ") != std::string::npos ||
                   place.path.find_first_of("?# ") != std::string::npos;
  if (place.host.empty() || odd) return not_a_url(url);
  return place;
}

aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(Place place, Names& names,
                                                           base::Milliseconds within) {
  CO_TRY(const auto addresses, co_await names.find(place.host, within));
  base::Error failed = base::error(base::ErrorCode::kUnavailable, place.host, " has no address");
  for (const std::string& address : addresses) {
    auto stream = co_await aio::connect(address, place.port, within);
    if (stream) co_return *std::move(stream);
    failed = stream.error();
  }
  co_return failed;
}

aio::Task<base::Result<std::shared_ptr<aio::Stream>>> Dialler::dial(
    Place place, base::Milliseconds within) const {
  CO_TRY(auto stream, co_await agentd::dial(place, names_, within));
  if (!place.tls) co_return stream;
  co_return co_await tls_.secure(std::move(stream), place.host, within);
}

}  // namespace agentd
