#include "agentd/dial/dial.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <vector>

#include "libs/base/strings.h"

namespace agentd {
namespace {

constexpr std::size_t kAddressesMax = 4;  // That are tried of one name.

base::Error not_a_url(std::string_view url) {
  return base::error(base::ErrorCode::kInvalid, "not a URL of an executor: ", url);
}

// Without asking anybody: what is an address, and what means this machine (RFC 6761 §6.3).
std::string known_address(const std::string& host) {
  in_addr ignored{};
  if (::inet_pton(AF_INET, host.c_str(), &ignored) == 1) return host;
  return host == "localhost" || host.ends_with(".localhost") ? "127.0.0.1" : "";
}

base::Result<std::vector<std::string>> look_up(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); failed != 0)
    return base::error(base::ErrorCode::kUnavailable, "cannot look up ", host, ": ",
                       ::gai_strerror(failed));
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one && addresses.size() < kAddressesMax; one = one->ai_next) {
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ai_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) addresses.emplace_back(text);
  }
  ::freeaddrinfo(found);
  return addresses;
}

aio::Task<base::Result<std::vector<std::string>>> addresses_of(std::string host,
                                                               aio::Background& background) {
  if (const std::string known = known_address(host); !known.empty())
    co_return std::vector<std::string>{known};
  co_return co_await background.run([host] { return look_up(host); });
}

}  // namespace

std::string Place::authority() const {
  const bool usual = port == (tls ? 443 : 80);
  return usual ? host : host + ":" + std::to_string(port);
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
  const std::string_view authority = rest.substr(0, slash);
  const std::size_t colon = authority.find(':');
  place.host = base::lower(authority.substr(0, colon));
  place.port = place.tls ? 443 : 80;
  if (colon != std::string_view::npos) {
    const auto port = base::parse_integer(authority.substr(colon + 1));
    if (!port || *port < 1 || *port > 65'535) return not_a_url(url);
    place.port = static_cast<int>(*port);
  }
  const bool odd = place.host.find_first_of("@[]?#% ") != std::string::npos ||
                   place.path.find_first_of("?# ") != std::string::npos;
  if (place.host.empty() || odd) return not_a_url(url);
  return place;
}

aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(Place place, aio::Background& background,
                                                           base::Milliseconds within) {
  CO_TRY(const auto addresses, co_await addresses_of(place.host, background));
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
  CO_TRY(auto stream, co_await agentd::dial(place, background_, within));
  if (!place.tls) co_return stream;
  co_return co_await tls_.secure(std::move(stream), place.host, within);
}

}  // namespace agentd
