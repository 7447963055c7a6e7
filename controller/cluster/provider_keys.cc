#include "controller/cluster/provider_keys.h"

#include <algorithm>
#include <set>

#include "libs/base/log.h"
#include "libs/base/rest.h"

namespace controller {

using api::SandboxProvider;
using base::Result;

Result<std::string> ProviderKeys::api_key(const SandboxProvider& provider) {
  const std::string& name = provider.metadata.key.name;
  if (!provider.spec.credentials) return source_.read(provider);
  {
    std::lock_guard lock(mutex_);
    const auto kept = kept_.find(name);
    if (kept != kept_.end() && kept->second.from == *provider.spec.credentials)
      return kept->second.key;
  }
  Result<std::string> read = source_.read(provider);
  std::lock_guard lock(mutex_);
  kept_.insert_or_assign(name, Kept{*provider.spec.credentials, read});
  return read;
}

void ProviderKeys::take(const SandboxProvider& provider, Result<std::string> read) {
  const std::string& name = provider.metadata.key.name;
  {
    std::lock_guard lock(mutex_);
    const auto kept = kept_.find(name);
    if (kept == kept_.end() || kept->second.from != *provider.spec.credentials) return;
    Result<std::string>& key = kept->second.key;
    if (!read && key) {
      base::log::warn("the API key of a provider cannot be read; going on with the last one",
                      {{"provider", name}, {"error", read.error()}});
      return;
    }
    const bool same = read ? key && *key == *read : key.error() == read.error();
    if (same) return;
    key = std::move(read);
  }
  base::log::info("the API key of a provider has changed", {{"provider", name}});
  source_.changed(name);
}

void ProviderKeys::refresh() {
  const auto providers = source_.providers();
  std::set<std::string> asked_for;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(kept_, [&](const auto& kept) {
      return std::ranges::none_of(providers, [&](const auto& provider) {
        return provider->metadata.key.name == kept.first && provider->spec.credentials;
      });
    });
    for (const auto& [name, kept] : kept_) asked_for.insert(name);
  }
  for (const auto& provider : providers)
    if (asked_for.contains(provider->metadata.key.name) && provider->spec.credentials)
      take(*provider, source_.read(*provider));
}

void ProviderKeys::start(base::Milliseconds every) {
  thread_ = std::jthread([this, every](const std::stop_token& stop) {
    for (base::rest(every, stop); !stop.stop_requested(); base::rest(every, stop)) refresh();
  });
}

}  // namespace controller
