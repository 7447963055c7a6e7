#include <unistd.h>

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "controller/attach/cluster_entrance.h"
#include "controller/cluster/cluster_store.h"
#include "controller/cluster/demands.h"
#include "controller/cluster/provider_keys.h"
#include "controller/cluster/shard_leases.h"
#include "controller/home.h"
#include "controller/metrics.h"
#include "libs/base/crypto.h"
#include "libs/base/log.h"
#include "libs/base/rest.h"
#include "libs/kube/write.h"
#include "libs/net/cpprest/cpprest_transport.h"
#include "libs/net/curl_transport.h"

namespace controller {
namespace {

constexpr base::Milliseconds kSyncPatience{60'000};  // A mirror of 100,000 objects takes some.
constexpr base::Milliseconds kReadKeysEvery{15'000};
constexpr base::Milliseconds kReviewPatience{10'000};  // Somebody waits for it.
constexpr base::Milliseconds kLookAgain{1'000};

std::string host_name() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "controller";
}

base::Result<kube::Config> find_config(const Options& options) {
  auto found = kube::find_config({.kubeconfig = options.kubeconfig, .context = options.context},
                                 kube::surroundings_of_process());
  // Who named a cluster wants that one.
  if (found || found.error().code != base::ErrorCode::kNotFound || !options.kubeconfig.empty())
    return found;
  base::Error error = found.error();
  error.message += "; or give --manifests and --state, to work without a cluster";
  return error;
}

kube::ConnectionSettings connection_settings(const Options& options, metrics::Registry& registry) {
  return {
      .transport = [over_curl = options.http_transport == "curl"](
                       const net::ConnectionOptions& how) -> std::unique_ptr<net::Transport> {
        return over_curl ? net::curl_transport(how) : net::cpprest_transport(how);
      },
      .on_call =
          [&registry](const kube::Call& call) {
            registry.counter("rest_client_requests_total", {call.code, call.method, call.host})
                .add();
            if (const auto write = kube::write_of(call.method, call.path))
              registry
                  .counter("sandfleet_api_writes_total", {write->verb, write->resource, call.code})
                  .add();
            if (call.took)
              registry.histogram("rest_client_request_duration_seconds", {call.method, call.host})
                  .observe(seconds(*call.took));
          }};
}

// What clients dial is in the certificate in a settled order, so that replicas agree on it.
base::Result<HttpsDoorSettings> door_settings(const Options& options,
                                              const std::string& own_space) {
  TRY(const Listening at,
      listening_at("--attach-address", options.attach_address, options.attach_port));
  std::set<std::string> names;
  for (const std::string& name : options.attach_names)
    names.insert(base::as_server_name(name).value_or(name));
  const bool ours = options.attach_secret.empty();
  return HttpsDoorSettings{
      .address = at.host,
      .port = at.port,
      .certificates = {.space = own_space,
                       .secret = ours ? options.release + "-attach-tls" : options.attach_secret,
                       .authorities = options.release + "-attach-ca",
                       .ours = ours,
                       .terms = {.names = {names.begin(), names.end()}}},
      .look = base::Seconds(options.attach_look_seconds)};
}

// The ways to one API server; leases and reviews have clients of their own, which are not patient.
struct Server {
  Server(kube::Config config, const Options& options, const Home::Parts& parts)
      : own_space(options.own_namespace.empty() ? config.space : options.own_namespace),
        connection(std::move(config), parts.clock, connection_settings(options, parts.registry)),
        client(connection),
        for_leases(connection,
                   {.timeout = base::Milliseconds(base::Seconds(options.lease_seconds)) / 3}),
        for_attach(connection, {.timeout = kReviewPatience}) {}

  const std::string own_space;
  kube::Connection connection;
  kube::Client client, for_leases, for_attach;
};

class ClusterHome final : public Home {
 public:
  // Without `door`, nobody attaches.
  ClusterHome(std::unique_ptr<Server> server, std::string fleet_id, const Options& options,
              std::optional<HttpsDoorSettings> door, const Parts& parts)
      : parts_(parts),
        door_(std::move(door)),
        identity_(host_name() + "_" + base::random_hex(4)),
        server_(std::move(server)),
        store_(server_->client, parts.clock,
               {.own_space = server_->own_space,
                .release = options.release,
                .space = options.watched_namespace,
                .fleet_id = std::move(fleet_id),
                .instance = identity_}),
        keys_({.providers = [this] { return store_.providers(); },
               .read = [this](const auto& provider) { return read_key(provider); },
               .changed = [this](const auto& name) { parts_.provider_news.add(name); }}),
        leases_(server_->for_leases, parts.clock,
                {.space = server_->own_space,
                 .prefix = options.release,
                 .identity = identity_,
                 .shards = static_cast<int>(options.shards),
                 .lease = base::Seconds(options.lease_seconds)}) {
    store_.on_sandbox_change([this](const api::Key& key) { parts_.queue.add(key); });
    store_.on_provider_change([this](const std::string& name) {
      if (is_news(name)) parts_.provider_news.add(name);
    });
    parts_.registry.before_exposition([this, told = std::map<std::string, int>{}]() mutable {
      for (const auto& [name, held] : leases_.held())
        parts_.registry.gauge("leader_election_master_status", {name}).set(held ? 1 : 0);
      for (const auto& [name, count] : leases_.slow_paths()) {
        parts_.registry.counter("leader_election_slowpath_total", {name}).add(count - told[name]);
        told[name] = count;
      }
    });
  }

  api::ResourceStore& store() override { return store_; }
  const Mandate& mandate() const override { return leases_; }
  base::Result<std::string> api_key(const api::SandboxProvider& provider) override {
    return keys_.api_key(provider);
  }
  std::unique_ptr<Entrance> entrance(const std::string& fleet_key, AttachService::WayTo way_to,
                                     AttachService::WayFailed way_failed) override {
    if (!door_) return nullptr;
    return std::make_unique<ClusterEntrance>(
        ClusterEntrance::Parts{server_->for_attach, store_, parts_.clock, parts_.registry},
        fleet_key, std::move(way_to), std::move(way_failed), *door_);
  }
  base::Result<base::Done> start() override {
    CHECK_OK(store_.start(kSyncPatience, {}));
    keys_.start(kReadKeysEvery);
    leases_.start({.gained = [this](int shard) { look_at_all_of(shard); }, .over = parts_.over});
    return base::Done{};
  }
  std::optional<base::Error> end() const override { return leases_.end(); }
  base::Result<base::Done> close() override { return base::Done{}; }

 private:
  // Not what we write of it ourselves: that would try again whatever it has refused.
  bool is_news(const std::string& name) {
    const auto provider = store_.find_provider(name);
    std::lock_guard lock(mutex_);
    if (!provider) return versions_.erase(name) > 0;
    const auto version = std::pair(provider->metadata.uid, provider->metadata.generation);
    return std::exchange(versions_[name], version) != version;
  }
  base::Result<std::string> read_key(const api::SandboxProvider& provider) {
    return parts_.credentials.api_key(store_, server_->own_space, provider);
  }
  void look_at_all_of(int shard) {
    for (const auto& sandbox : store_.sandboxes())
      if (leases_.is_of(shard, sandbox->spec.provider)) queue_first_look(parts_.queue, *sandbox);
    for (const auto& provider : store_.providers())
      if (leases_.is_of(shard, provider->metadata.key.name))
        parts_.provider_news.add(provider->metadata.key.name);
  }

  const Parts parts_;
  const std::optional<HttpsDoorSettings> door_;
  const std::string identity_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::string, std::int64_t>> versions_;  // UID and generation.
  const std::unique_ptr<Server> server_;
  ClusterStore store_;
  ProviderKeys keys_;
  ShardLeases leases_;
};

}  // namespace

base::Result<std::unique_ptr<Home>> open_cluster(const Options& options, const Home::Parts& parts) {
  TRY(kube::Config config, find_config(options));
  base::log::info("working in a cluster",
                  {{"server", config.cluster.server}, {"as", config.source}});
  auto server = std::make_unique<Server>(std::move(config), options, parts);
  std::optional<HttpsDoorSettings> door;
  if (!options.attach_address.empty()) {
    TRY(door, door_settings(options, server->own_space));
  }
  CHECK_OK(check_rights(server->client, {.own_space = server->own_space,
                                         .space = options.watched_namespace,
                                         .needs_fleet_id = options.fleet_id.empty(),
                                         .attaches = door.has_value()}));
  CHECK_OK(check_definitions(server->client, [] { base::rest(kLookAgain, {}); }));
  std::string fleet_id = options.fleet_id;
  if (fleet_id.empty()) {
    TRY(fleet_id, fleet_id_of(server->client, server->own_space, options.release));
  }
  return std::unique_ptr<Home>(std::make_unique<ClusterHome>(std::move(server), std::move(fleet_id),
                                                             options, std::move(door), parts));
}

}  // namespace controller
