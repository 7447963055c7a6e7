#include "controller/poll/connections.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "libs/api/reasons.h"

namespace controller {
namespace {

using Look = std::set<std::tuple<std::string, e2b::State, std::optional<base::WallTime>>>;

Look look_of(const Polled& polled, const std::string& uid) {
  Look look;
  for (const Sighting& sandbox : polled.of(uid))
    look.emplace(sandbox.id, sandbox.state, sandbox.started_at);
  return look;
}

ProviderProblem problem(std::string_view reason, const base::Error& error) {
  return {error, std::string(reason)};
}

}  // namespace

std::set<std::string> changed_uids(const Polled& before, const Polled& after) {
  std::set<std::string> changed;
  for (const Polled* polled : {&before, &after})
    for (const Sighting& sandbox : polled->sandboxes)
      if (look_of(before, sandbox.uid) != look_of(after, sandbox.uid)) changed.insert(sandbox.uid);
  return changed;
}

Connections::Connections(const api::ResourceStore& store, const base::Clock& clock, Doors doors)
    : store_(store), clock_(clock), doors_(std::move(doors)) {}

base::Result<Session, ProviderProblem> Connections::session(const std::string& name) {
  const auto provider = store_.find_provider(name);
  if (!provider)
    return problem(api::reason::kProviderNotFound,
                   base::error(base::ErrorCode::kNotFound, "there is no SandboxProvider ", name,
                               "; apply one, or name another in spec.providerRef"));
  if (const auto key = doors_.api_key(*provider); !key)
    return problem(key.error().code == base::ErrorCode::kInvalid ? api::reason::kCredentialsInvalid
                                                                 : api::reason::kCredentialsMissing,
                   key.error());
  std::lock_guard lock(mutex_);
  Connection& connection = connections_[name];
  const bool moved = connection.api_url != provider->spec.api_url ||
                     connection.ca_bundle != provider->spec.ca_bundle;
  if (!connection.gate || moved)
    connection = {
        provider->spec.api_url, provider->spec.ca_bundle,
        std::make_shared<Gate>(doors_.connect(*provider), clock_, GateOptions{}, [this, name] {
          if (doors_.room_again) doors_.room_again(name);
        })};
  return Session{provider, connection.gate, connection.polled};
}

void Connections::keep_only(const std::set<std::string>& names) {
  std::lock_guard lock(mutex_);
  std::erase_if(connections_, [&](const auto& each) { return !names.contains(each.first); });
}

base::Result<std::set<std::string>, ProviderProblem> Connections::poll(const std::string& name,
                                                                       std::stop_token stop) {
  auto session = this->session(name);
  if (!session) return session.error();
  const std::string fleet = store_.fleet_id();
  auto polled = std::make_shared<Polled>();
  polled->started = clock_.now();
  auto listed = session->gate->as(Priority::kPoll).list({{{key::kFleet, fleet}}}, stop);
  if (!listed)
    return problem(listed.error().code == base::ErrorCode::kDenied
                       ? api::reason::kCredentialsRejected
                       : api::reason::kProviderUnavailable,
                   listed.error());
  polled->provider_time = listed->provider_time;
  for (auto& sandbox : listed->value) {
    // Servers may ignore the filter.
    if (metadata_at(sandbox, key::kFleet) != fleet) continue;
    polled->sandboxes.push_back(sighting_of(std::move(sandbox)));
  }
  std::ranges::sort(polled->sandboxes, {}, &Sighting::uid);
  polled->sandboxes.shrink_to_fit();
  std::lock_guard lock(mutex_);
  const auto found = connections_.find(name);
  // It moved or went meanwhile.
  if (found == connections_.end() || found->second.gate != session->gate)
    return std::set<std::string>{};
  const auto before = std::exchange(found->second.polled, polled);
  return changed_uids(before ? *before : Polled{}, *polled);
}

}  // namespace controller
