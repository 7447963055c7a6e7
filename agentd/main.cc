// sandfleet-agentd: on each harness node, carries what harnesses ask for to their sandboxes.
//
//   harness -> UnixDoor (may it connect?) -> Carriers -> Carrier: one harness, and its executor
//                                                          |  WaysIn (the attach service)
//                                                          |  Directory (what the watch says)
//                                                          v
//                                             the executor, through the provider's router
#include <signal.h>

#include <atomic>
#include <random>

#include "agentd/carry/carriers.h"
#include "agentd/door/tcp_door.h"
#include "agentd/door/unix_door.h"
#include "agentd/metrics/metrics.h"
#include "agentd/options.h"
#include "agentd/serve.h"
#include "agentd/way/sources.h"
#include "libs/aio/loop.h"
#include "libs/base/descriptors.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/metrics/process.h"

using namespace agentd;  // NOLINT: the program's own words.

namespace {

constexpr int kBackgroundThreads = 1;  // Sockets are looked after there.

constexpr std::size_t kAuthoritiesBytesMax = 4u << 20;

RosterLimits limits_of(const Options& options, std::size_t descriptors) {
  const RosterLimits wanted{.links_max = static_cast<std::size_t>(options.links_max),
                            .links_each_max = static_cast<std::size_t>(options.links_each_max)};
  const RosterLimits limits = fitting(wanted, descriptors);
  if (limits.links_max < wanted.links_max)
    base::log::warn("fewer links than asked for: there are not enough descriptors",
                    {{"links", limits.links_max}, {"descriptors", descriptors}});
  return limits;
}

CarrierTimes times_of(const Options& options) {
  CarrierTimes times;
  times.ask_every = base::Seconds(options.check_seconds);
  times.ask_after_silence = std::min(times.ask_after_silence, times.ask_every);
  return times;
}

base::Result<Dialler> dialler_of(const Options& options, Names& names) {
  std::optional<std::string> authorities;
  if (!options.executor_ca.empty()) {
    TRY(authorities, base::read_file(options.executor_ca, kAuthoritiesBytesMax));
  }
  TRY(auto tls, aio::TlsClient::with({.authorities = std::move(authorities)}));
  return Dialler(names, std::move(tls));
}

struct Doors {
  UnixDoor& here;
  TcpDoor* elsewhere = nullptr;
};

aio::Task<int> serve(aio::Executor executor, Doors doors, Carriers& carriers,
                     std::atomic<bool>& ending, base::Seconds drain) {
  aio::TaskGroup tasks(executor);
  tasks.spawn(doors.here.open());
  if (doors.elsewhere) tasks.spawn(doors.elsewhere->open());
  const int signal = co_await aio::wait_for_signal({SIGTERM, SIGINT});
  base::log::info("stopping; sessions go on in their sandboxes", {{"signal", signal}});
  ending = true;
  tasks.cancel();
  co_await tasks.wait();
  co_await carriers.drain(drain);
  co_await carriers.end();
  co_return 0;
}

base::Result<int> run(const Options& options) {
  TRY(const Settings settings, settings_of(options));
  const base::DescriptorLimit descriptors = base::raise_descriptor_limit();
  const base::SystemClock clock;
  metrics::Registry registry(metrics_table());
  metrics::watch_process(registry);
  Counts counts(registry);
  std::minstd_rand chance(static_cast<unsigned>(clock.now().time_since_epoch().count()));

  aio::Loop loop;
  aio::Background background(kBackgroundThreads);
  Names names(loop.executor());
  TRY(const auto sources, open_sources(options.way, loop.executor(), names, clock));
  TRY(const Dialler dialler, dialler_of(options, names));
  const RosterLimits limits = limits_of(options, descriptors.now);
  Roster roster(limits);
  const CarrierParts parts{
      .executor = loop.executor(),
      .dialler = dialler,
      .ways = sources->ways(),
      .directory = sources->directory(),
      .roster = roster,
      .counts = counts,
      .clock = clock,
      .usual = settings.usual,
      .jitter = [&chance] { return std::uniform_real_distribution<>(0, 1)(chance); },
      .times = times_of(options)};
  Carriers carriers(parts, limits);

  const Serve carry = [&carriers](std::shared_ptr<aio::Stream> harness, Caller caller) {
    carriers.carry(std::move(harness), std::move(caller));
  };
  TRY(const auto door, UnixDoor::at(loop.executor(), background, settings.door, carry));
  std::unique_ptr<TcpDoor> tcp;
  if (settings.tcp) {
    TRY(tcp, TcpDoor::at(loop.executor(), *settings.tcp, carry));
  }
  std::atomic<bool> ending = false;
  TRY(const auto server, serve_metrics(options, registry, [&ending, &door] {
        return ending ? "it is about to end" : door->trouble();
      }));
  CHECK_OK(say_ready(options, *server, tcp.get()));
  return loop.run(serve(loop.executor(), {*door, tcp.get()}, carriers, ending,
                        base::Seconds(options.drain_seconds)));
}

}  // namespace

int main(int argc, char** argv) {
  base::hold_standard_descriptors();
  Options options;
  if (const auto exit_code = parse_options(argc, argv, options)) return *exit_code;
  base::log::configure(*base::log::parse_level(options.log_level),
                       *base::log::parse_format(options.log_format));
  const auto ended = run(options);
  if (ended) return *ended;
  base::log::error("cannot go on", {{"error", ended.error()}});
  return 1;
}
