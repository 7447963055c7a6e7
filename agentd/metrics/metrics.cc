#include "agentd/metrics/metrics.h"

#include <chrono>

#include "libs/metrics/process.h"

namespace agentd {

using metrics::Definition;
using metrics::Kind;

metrics::Table metrics_table() {
  metrics::Table table = {
      {Kind::kGauge, "sandfleet_agentd_links", "Harness links that have said hello."},
      {Kind::kCounter, "sandfleet_agentd_connections_total",
       "Connections of harnesses, whatever came of them."},
      {Kind::kHistogram,
       "sandfleet_agentd_handshake_seconds",
       "From a harness's hello to its first welcome.",
       {},
       metrics::exponential_buckets(1e-3, 2.5, 12)},
      {Kind::kCounter,
       "sandfleet_agentd_frames_total",
       "Frames carried, by their direction.",
       {"direction"}},
      {Kind::kCounter,
       "sandfleet_agentd_bytes_total",
       "Bytes of frames carried, by their direction.",
       {"direction"}},
      {Kind::kCounter,
       "sandfleet_agentd_asks_total",
       "Questions to the attach service, by its answer.",
       {"result"}},
      {Kind::kCounter,
       "sandfleet_agentd_dials_total",
       "Executors dialled, for a harness that is new or again for one that was let in, by what "
       "came of it.",
       {"attempt", "result"}},
      {Kind::kCounter,
       "sandfleet_agentd_welcomes_total",
       "Executors that let a harness in, by what became of its session: new, resumed, or a new one "
       "in place of one that was lost with its incarnation or is unknown: it ended, or gave way.",
       {"session"}},
      {Kind::kCounter,
       "sandfleet_agentd_closes_total",
       "Harness links that agentd ended, by the reason that the harness was given; none: too many "
       "were about to be told.",
       {"reason"}},
  };
  for (Definition& one : metrics::process_table()) table.push_back(std::move(one));
  return table;
}

Traffic::Traffic(metrics::Registry& registry, std::string_view direction)
    : frames_(registry.counter("sandfleet_agentd_frames_total", {std::string(direction)})),
      bytes_(registry.counter("sandfleet_agentd_bytes_total", {std::string(direction)})) {}

void Traffic::count(std::size_t bytes) {
  frames_.add();
  bytes_.add(static_cast<double>(bytes));
}

Counts::Counts(metrics::Registry& registry)
    : to_executor(registry, "to_executor"),
      to_harness(registry, "to_harness"),
      registry_(registry) {}

void Counts::connected() { registry_.counter("sandfleet_agentd_connections_total").add(); }

void Counts::let_in(base::Milliseconds after_hello) {
  registry_.histogram("sandfleet_agentd_handshake_seconds")
      .observe(std::chrono::duration<double>(after_hello).count());
}

void Counts::asked(std::string_view result) {
  registry_.counter("sandfleet_agentd_asks_total", {std::string(result)}).add();
}

void Counts::welcomed(std::string_view session) {
  registry_.counter("sandfleet_agentd_welcomes_total", {std::string(session)}).add();
}

void Counts::dialled(bool again, std::string_view result) {
  registry_
      .counter("sandfleet_agentd_dials_total", {again ? "again" : "first", std::string(result)})
      .add();
}

void Counts::told(std::string_view reason) {
  registry_.counter("sandfleet_agentd_closes_total", {std::string(reason)}).add();
}

void Counts::links(std::size_t open) {
  registry_.gauge("sandfleet_agentd_links").set(static_cast<double>(open));
}

}  // namespace agentd
