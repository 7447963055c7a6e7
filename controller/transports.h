#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "libs/api/provider.h"
#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"
#include "libs/net/transport.h"

namespace controller {

// The program's HTTP clients: two for each set of authorities that a provider is checked by, for
// APIs and for data planes, so that neither waits for the other's connections. They are kept while
// a provider's connection is held; those of authorities that no one uses any more go when the next
// is made.
class Transports {
 public:
  using ApiKey = std::function<base::Result<std::string>(const api::SandboxProvider&)>;
  // `api_key` is asked anew for each request.
  std::shared_ptr<e2b::Cloud> connect(const api::SandboxProvider& provider,
                                      const base::Clock& clock, const ApiKey& api_key);
  std::shared_ptr<net::Transport> inside(const api::ProviderSpec& provider);

 private:
  using ByAuthorities = std::map<std::string, std::shared_ptr<net::Transport>>;
  std::shared_ptr<net::Transport> transport_of(ByAuthorities& all, const std::string& authorities);

  std::mutex mutex_;
  ByAuthorities apis_, insides_;
};

}  // namespace controller
