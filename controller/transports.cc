#include "controller/transports.h"

#include <iterator>
#include <utility>

#include "libs/e2b/client.h"
#include "libs/net/curl_transport.h"

namespace controller {
namespace {

// A client of a provider's API, and what is to be kept as long as it.
struct Connection {
  Connection(std::shared_ptr<net::Transport> to_api, std::shared_ptr<net::Transport> to_inside,
             const base::Clock& clock, e2b::Settings settings)
      : api(std::move(to_api)),
        inside(std::move(to_inside)),
        client(*api, clock, std::move(settings)) {}

  const std::shared_ptr<net::Transport> api, inside;
  e2b::Client client;
};

}  // namespace

std::shared_ptr<e2b::Cloud> Transports::connect(const api::SandboxProvider& provider,
                                                const base::Clock& clock, const ApiKey& api_key) {
  auto connection = std::make_shared<Connection>(
      transport_of(apis_, provider.spec.ca_bundle), inside(provider.spec), clock,
      e2b::Settings{.api_url = provider.spec.api_url,
                    .api_key = [api_key, provider] { return api_key(provider); }});
  return {connection, &connection->client};
}

std::shared_ptr<net::Transport> Transports::inside(const api::ProviderSpec& provider) {
  return transport_of(insides_, provider.ca_bundle);
}

std::shared_ptr<net::Transport> Transports::transport_of(ByAuthorities& all,
                                                         const std::string& authorities) {
  ByAuthorities unused;  // Outlives the lock, for their ends may take a while.
  std::lock_guard lock(mutex_);
  if (const auto found = all.find(authorities); found != all.end()) return found->second;
  // Ours is the last hold of each, so that none ends on a thread of its own.
  for (auto each = all.begin(); each != all.end();) {
    const auto next = std::next(each);
    if (each->second.use_count() == 1) unused.insert(all.extract(each));
    each = next;
  }
  return all[authorities] =
             net::curl_transport({.user_agent = "sandfleet-controller", .ca_bundle = authorities});
}

}  // namespace controller
