#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libs/api/provider.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace controller {

// The API keys that providers name a Secret for. Each is read when it is first asked for, and then
// again and again by a thread of its own, so that a heartbeat never waits for an API server, and
// goes on when that is away. A key that cannot be read any more stays what it was.
class ProviderKeys {
 public:
  struct Source {
    std::function<std::vector<std::shared_ptr<const api::SandboxProvider>>()> providers;
    std::function<base::Result<std::string>(const api::SandboxProvider&)> read;
    // A key is another, or is there now, or is no longer missing for the same reason.
    std::function<void(const std::string& provider)> changed;
  };
  explicit ProviderKeys(Source source) : source_(std::move(source)) {}

  base::Result<std::string> api_key(const api::SandboxProvider& provider);
  // Reads all that were asked for again, and forgets those of providers that are gone.
  void refresh();
  // Refreshes so often, until destroyed. Once.
  void start(base::Milliseconds every);

 private:
  struct Kept {
    api::ProviderSpec::SecretRef from;
    base::Result<std::string> key;
  };
  void take(const api::SandboxProvider& provider, base::Result<std::string> read);

  const Source source_;
  std::mutex mutex_;
  std::map<std::string, Kept> kept_;  // By provider, of those that name a Secret.
  std::jthread thread_;
};

}  // namespace controller
