// sandfleet-controller: watches Sandbox resources and keeps each one's E2B sandbox in step.
//
//   manifests -> FileStore -> Queue -> Reconciler: observe, decide, act, report, publish
//                                        |  Connections (one gate and one poll a provider)
//                                        |  Pool (creates, pauses, resumes, preparation)
//                                        |  Engine (heartbeats)      Sweeper (orphans)

#include <cstdlib>

#include "controller/controller.h"
#include "controller/credentials.h"
#include "controller/metrics.h"
#include "controller/options.h"
#include "controller/prepare/sandbox_reach.h"
#include "controller/serve.h"
#include "controller/transports.h"
#include "libs/base/log.h"
#include "libs/manifests/file_store.h"

using namespace controller;  // NOLINT: the program's own words.

namespace {

std::string key_of_environment() {
  for (const char* name : {"SANDFLEET_API_KEY", "E2B_API_KEY"})
    if (const char* key = std::getenv(name); key && *key) return key;
  return {};
}

// What is on record is kept alive even where nothing more can be recorded, as on a full disk.
base::Result<base::Done> first_look(manifests::FileStore& store) {
  const auto scanned = store.scan_once();
  if (scanned || scanned.error().code != base::ErrorCode::kUnavailable) return scanned;
  base::log::error("the manifests cannot be taken; going on with what is on record",
                   {{"error", scanned.error()}});
  return base::Done{};
}

base::Result<base::Done> run(const Options& options) {
  // Before any thread begins, so that every thread leaves these signals to us.
  const Signals signals;
  const base::SystemClock clock;
  metrics::Registry registry(metrics_table());
  TRY(const Credentials credentials,
      Credentials::read(options.api_key_files, key_of_environment()));
  // What the store tells of changes outlives it.
  kube::Queue queue(clock);
  ProviderNews provider_news;
  TRY(const ExecutorFile executor, read_executor(options.executor));
  TRY(const auto store,
      manifests::FileStore::open({.manifests = options.manifests,
                                  .state = options.state,
                                  .fleet_id = options.fleet_id,
                                  .claim_moved_manifests = options.claim_moved_manifests},
                                 clock));
  TRY(const std::string fleet_key, store->fleet_key());
  Transports transports;
  const auto key_of = [&](const api::SandboxProvider& provider) {
    return credentials.api_key(*store, provider);
  };
  Connections connections(*store, clock, {key_of, [&](const api::SandboxProvider& provider) {
                                            return measured(
                                                transports.connect(provider, clock, key_of), clock,
                                                registry);
                                          }});
  Memories memories;
  SandboxReach reach([&](const api::ProviderSpec& provider) { return transports.inside(provider); },
                     clock, fleet_key, executor);
  Engine engine(clock, {}, heartbeat_news(registry, memories, *store, queue, clock));
  Pool pool({.threads = static_cast<std::size_t>(options.operations)},
            [&](const api::Key& key) { queue.add(key); });
  MetricsObserver observer(registry);
  Reconciler reconciler({*store, connections, pool, engine, reach, memories, clock, observer});
  Sweeper sweeper(*store, connections, clock, base::Seconds(options.grace_seconds));
  Controller controller({*store, queue, reconciler, connections, engine, pool, sweeper, memories,
                         clock, registry, provider_news},
                        {.workers = static_cast<std::size_t>(options.workers),
                         .poll = base::Seconds(options.poll_seconds),
                         .sweep = base::Seconds(options.sweep_seconds)});
  watch(registry, {queue, engine, pool, memories, *store});
  store->on_sandbox_change([&](const api::Key& key) { queue.add(key); });
  store->on_provider_change([&](const std::string& name) { provider_news.add(name); });
  TRY(const auto server, serve(options, registry, [&] { return controller.trouble(); }));
  CHECK_OK(first_look(*store));
  store->start();
  controller.start();
  CHECK_OK(say_ready(options, *server));
  signals.wait();
  base::log::info("stopping; no sandbox is touched");
  controller.stop();
  return store->close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const auto exit_code = parse_options(argc, argv, options)) return *exit_code;
  base::log::configure(*base::log::parse_level(options.log_level),
                       *base::log::parse_format(options.log_format));
  const auto ended = run(options);
  if (ended) return 0;
  base::log::error("cannot go on", {{"error", ended.error()}});
  return 1;
}
