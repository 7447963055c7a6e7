// sandfleet-controller: watches Sandbox resources and keeps each one's E2B sandbox in step.
//
//   folder of manifests -> FolderHome --+
//                                       +-- ResourceStore, Mandate
//   cluster ------------> ClusterHome --+
//
//   ResourceStore -> Queue -> Reconciler: observe, decide, act, report, publish
//                               |  Connections (one gate and one poll a provider, behind a fence)
//                               |  Pool (creates, pauses, resumes, preparation)
//                               |  Engine (heartbeats)      Sweeper (orphans)
//
//   harnesses -> Entrance: may they?, where? (Ways)
//                  in a cluster over HTTPS, by the API server's word
//                  beside a folder at a Unix socket, by who connects

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "controller/attach/ways.h"
#include "controller/controller.h"
#include "controller/credentials.h"
#include "controller/doors.h"
#include "controller/fence/fence.h"
#include "controller/home.h"
#include "controller/metrics.h"
#include "controller/options.h"
#include "controller/prepare/sandbox_reach.h"
#include "controller/probe.h"
#include "controller/serve.h"
#include "controller/transports.h"
#include "libs/base/descriptors.h"
#include "libs/base/log.h"
#include "libs/net/curl_transport.h"

using namespace controller;  // NOLINT: the program's own words.

namespace {

std::string key_of_environment() {
  for (const char* name : {"SANDFLEET_API_KEY", "E2B_API_KEY"})
    if (const char* key = std::getenv(name); key && *key) return key;
  return {};
}

// Many threads work here by turns. With a heap for each of them, and with large blocks taken from
// those heaps, each keeps what it once needed for a list or a reply, and never needs again.
void keep_heaps_few() {
  mallopt(M_ARENA_MAX, std::max(2, static_cast<int>(std::thread::hardware_concurrency())));
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

RoundsOptions rounds_of(const Options& options) {
  return {.every = base::Seconds(options.executor_check_seconds)};
}

Pace pace_of(const Options& options) {
  return {.workers = static_cast<std::size_t>(options.workers),
          .poll = base::Seconds(options.poll_seconds),
          .sweep = base::Seconds(options.sweep_seconds)};
}

// Half of the workers may wait for a provider's short answers.
std::size_t asking_max(const Options& options) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(options.workers) / 2);
}

// Why we are not ready; empty when we are.
std::string trouble_of(const Controller& controller, const Home& home, const Entrance* entrance) {
  for (const std::string& trouble : {controller.trouble(), home.trouble()})
    if (!trouble.empty()) return trouble;
  return entrance ? entrance->trouble() : std::string();
}

// From the first look at everything to a signal, or to the end of the mandate.
base::Result<base::Done> live(Home& home, Controller& controller, Entrance* entrance,
                              const Signals& signals,
                              const std::function<base::Result<base::Done>()>& ready) {
  CHECK_OK(home.start());
  controller.start();
  if (entrance) entrance->open();
  CHECK_OK(ready());
  signals.wait();
  if (const auto ended = home.end()) {
    controller.leave();
    return *ended;
  }
  base::log::info("stopping; no sandbox is touched");
  controller.stop();
  return home.close();
}

base::Result<base::Done> run(const Options& options) {
  // Before any thread begins, so that every thread leaves these signals to us.
  const Signals signals;
  const base::SystemClock clock;
  metrics::Registry registry(metrics_table());
  TRY(const Credentials credentials,
      Credentials::read(options.api_key_files, key_of_environment()));
  std::error_code ignored;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  TRY(const ExecutorFiles executors, read_executors(options.executors, beside));
  kube::Queue queue(clock);
  ProviderNews provider_news;
  TRY(const auto home, open_home(options, {clock, registry, queue, provider_news, credentials,
                                           [&] { signals.raise(); }}));
  api::ResourceStore& store = home->store();
  const Mandate& mandate = home->mandate();
  TRY(const std::string fleet_key, store.fleet_key());

  Transports transports;
  Connections connections(store, clock,
                          doors_to_providers(*home, transports, queue, clock, registry));
  SandboxReach reach([&](const api::ProviderSpec& provider) { return transports.inside(provider); },
                     clock, fleet_key, executors);
  FencedReach fenced_reach(reach, mandate);

  Memories memories;
  Engine engine(clock, {}, heartbeat_news(registry, memories, store, queue, clock));
  Pool pool({.threads = static_cast<std::size_t>(options.operations)},
            [&](const api::Key& key) { queue.add(key); });
  MetricsObserver observer(registry);
  Reconciler reconciler({store, connections, pool, engine, fenced_reach, memories, mandate, clock,
                         observer, asking_max(options)},
                        rounds_of(options));
  Sweeper sweeper(store, connections, clock, base::Seconds(options.grace_seconds));
  Controller controller({store, queue, reconciler, connections, engine, pool, sweeper, memories,
                         mandate, clock, registry, provider_news},
                        pace_of(options));

  Ways ways(store, connections, memories);
  const auto entrance = home->entrance(
      fleet_key,
      [&](const api::Sandbox& sandbox, std::stop_token stop) {
        return ways.to(sandbox, std::move(stop));
      },
      news_of_failed_ways(memories, queue, clock));
  watch(registry, {queue, engine, pool, memories, store});
  TRY(const auto server,
      serve(options, registry, [&] { return trouble_of(controller, *home, entrance.get()); }));
  return live(*home, controller, entrance.get(), signals,
              [&] { return say_ready(options, *server); });
}

base::Result<base::Done> ask(const std::string& url) {
  const auto transport = net::curl_transport({.user_agent = "sandfleet-controller", .proxy = ""});
  TRY(const std::string words, probe(*transport, url));
  base::log::info("it works", {{"url", url}, {"says", words}});
  return base::Done{};
}

}  // namespace

int main(int argc, char** argv) {
  base::hold_standard_descriptors();
  Options options;
  if (const auto exit_code = parse_options(argc, argv, options)) return *exit_code;
  keep_heaps_few();
  base::log::configure(*base::log::parse_level(options.log_level),
                       *base::log::parse_format(options.log_format));
  const auto ended = options.probe.empty() ? run(options) : ask(options.probe);
  if (ended) return 0;
  base::log::error("cannot go on", {{"error", ended.error()}});
  return 1;
}
