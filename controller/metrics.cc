#include "controller/metrics.h"

#include <map>
#include <utility>

#include "libs/base/version.h"
#include "libs/metrics/process.h"

namespace controller {
namespace {

using metrics::Definition;
using metrics::Kind;

metrics::Table own_table() {
  const std::vector<double> reconcile = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                         0.5,   1,    2.5,   5,    10,  60};
  const std::vector<double> call = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                    1,     2.5,  5,     10,   30,  100};
  const std::vector<std::string> queue = {"name", "controller"};
  return {
      {Kind::kGauge, "workqueue_depth", "Sandboxes that wait for a worker.", queue},
      {Kind::kCounter, "workqueue_adds_total", "Sandboxes that were queued.", queue},
      {Kind::kCounter, "workqueue_retries_total", "Sandboxes that came back as failed.", queue},
      {Kind::kHistogram, "workqueue_queue_duration_seconds", "How long a Sandbox waited.", queue,
       metrics::exponential_buckets(1e-3, 4, 10)},
      {Kind::kHistogram, "workqueue_work_duration_seconds", "How long a worker took.", queue,
       metrics::exponential_buckets(1e-3, 4, 10)},
      {Kind::kGauge, "workqueue_longest_running_processor_seconds",
       "How long the longest worker has been at it.", queue},
      {Kind::kGauge, "workqueue_unfinished_work_seconds",
       "How long all workers together have been at what they have not finished.", queue},
      {Kind::kCounter,
       "controller_runtime_reconcile_total",
       "Turns that a worker took with a Sandbox, of as many steps as follow at once, by their "
       "result.",
       {"controller", "result"}},
      {Kind::kCounter,
       "controller_runtime_reconcile_errors_total",
       "Turns that failed.",
       {"controller"}},
      {Kind::kHistogram,
       "controller_runtime_reconcile_time_seconds",
       "How long a turn took.",
       {"controller"},
       reconcile},
      {Kind::kGauge, "controller_runtime_max_concurrent_reconciles", "Workers.", {"controller"}},
      {Kind::kGauge,
       "controller_runtime_active_workers",
       "Workers that are at work.",
       {"controller"}},
      {Kind::kCounter,
       "rest_client_requests_total",
       "Answers of the Kubernetes API server.",
       {"code", "method", "host"}},
      {Kind::kHistogram,
       "rest_client_request_duration_seconds",
       "How long the Kubernetes API server took.",
       {"verb", "host"},
       reconcile},
      {Kind::kGauge,
       "leader_election_master_status",
       "1 while this process acts by the lease of that name.",
       {"name"}},
      {Kind::kCounter,
       "leader_election_slowpath_total",
       "Renewals of the lease of that name that had to look at it first, for one had failed.",
       {"name"}},
      {Kind::kCounter,
       "sandfleet_api_writes_total",
       "Requests to the Kubernetes API server that change something, by the answer's code.",
       {"verb", "resource", "code"}},
      {Kind::kGauge, "sandfleet_sandboxes", "Sandboxes by their state.", {"state"}},
      {Kind::kHistogram,
       "sandfleet_sandbox_time_to_ready_seconds",
       "From a Sandbox's creation to its first Ready.",
       {"source"},
       call},
      {Kind::kCounter,
       "sandfleet_actions_total",
       "Steps by name and outcome.",
       {"action", "outcome"}},
      {Kind::kCounter,
       "sandfleet_provider_requests_total",
       "Calls to providers by operation and outcome.",
       {"op", "code"}},
      {Kind::kHistogram,
       "sandfleet_provider_request_duration_seconds",
       "How long calls to providers took.",
       {"op"},
       call},
      {Kind::kCounter,
       "sandfleet_provider_throttled_total",
       "Answers that asked to slow down, by kind.",
       {"kind"}},
      {Kind::kCounter, "sandfleet_create_ambiguous_total",
       "Creates whose outcome the answer did not tell."},
      {Kind::kHistogram,
       "sandfleet_heartbeat_lateness_seconds",
       "How late heartbeats left.",
       {},
       {0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}},
      {Kind::kGauge, "sandfleet_heartbeat_margin_seconds", "The shortest lease that is left."},
      {Kind::kGauge, "sandfleet_heartbeats", "Sandboxes whose lease is kept."},
      {Kind::kCounter, "sandfleet_drift_total", "Sandboxes changed by another hand.", {"kind"}},
      {Kind::kCounter, "sandfleet_idle_pauses_total", "Pauses of sandboxes that idled."},
      {Kind::kCounter, "sandfleet_wakes_total", "Sandboxes that were woken from such a pause."},
      {Kind::kCounter,
       "sandfleet_orphans_found_total",
       "Unowned E2B sandboxes that were found.",
       {"kind"}},
      {Kind::kCounter, "sandfleet_orphans_killed_total", "Unowned E2B sandboxes that were killed."},
      {Kind::kHistogram,
       "sandfleet_orphan_sweep_duration_seconds",
       "How long sweeps took.",
       {},
       call},
      {Kind::kGauge,
       "sandfleet_orphan_sweep_last_success_timestamp_seconds",
       "When the last sweep succeeded.",
       {"provider"}},
      {Kind::kGauge, "sandfleet_operations",
       "Creates, pauses, resumes and preparations under way."},
      {Kind::kGauge, "sandfleet_state_unwritable",
       "1 while a standalone controller cannot write its state folder: what is on record is kept "
       "alive, and nothing else is done."},
      {Kind::kGauge, "sandfleet_cache_objects", "Sandboxes that are remembered."},
      {Kind::kCounter,
       "sandfleet_attach_requests_total",
       "Requests for a way into a sandbox, by their outcome.",
       {"outcome"}},
      {Kind::kHistogram,
       "sandfleet_attach_request_duration_seconds",
       "How long requests for a way into a sandbox took, reviews by the API server included.",
       {},
       reconcile},
      {Kind::kGauge, "sandfleet_attach_certificate_expiry_timestamp_seconds",
       "When the certificate that the attach service shows is over."},
      {Kind::kGauge, "sandfleet_build_info", "1, with the version.", {"version"}},
  };
}

// A provider that counts.
class Measured final : public e2b::Cloud {
 public:
  using Done = std::function<void(base::Result<base::Done>)>;

  Measured(std::shared_ptr<e2b::Cloud> cloud, const base::Clock& clock, metrics::Registry& registry)
      : cloud_(std::move(cloud)), clock_(clock), registry_(registry) {}

  base::Result<e2b::Handle, e2b::CreateFailure> create(const e2b::NewSandbox& wanted,
                                                       std::stop_token stop) override {
    auto made = timed("create", [&] { return cloud_->create(wanted, stop); });
    using Failure = e2b::CreateFailure::Kind;
    if (!made && !made.error().definite())
      registry_.counter("sandfleet_create_ambiguous_total").add();
    if (!made && made.error().kind == Failure::kQuota)
      registry_.counter("sandfleet_provider_throttled_total", {"quota"}).add();
    return made;
  }
  base::Result<e2b::Told<std::optional<e2b::SandboxInfo>>> get(const std::string& id,
                                                               std::stop_token stop) override {
    return timed("get", [&] { return cloud_->get(id, stop); });
  }
  base::Result<std::optional<e2b::Handle>> handle(const std::string& id,
                                                  std::stop_token stop) override {
    return timed("handle", [&] { return cloud_->handle(id, stop); });
  }
  base::Result<e2b::Told<std::vector<e2b::SandboxInfo>>> list(const e2b::Filter& filter,
                                                              std::stop_token stop) override {
    return timed("list", [&] { return cloud_->list(filter, stop); });
  }
  base::Result<e2b::KillAnswer> kill(const std::string& id, std::stop_token stop) override {
    return timed("kill", [&] { return cloud_->kill(id, stop); });
  }
  base::Result<e2b::PauseAnswer> pause(const std::string& id, std::stop_token stop) override {
    return timed("pause", [&] { return cloud_->pause(id, stop); });
  }
  base::Result<e2b::Connected> connect(const std::string& id, base::Seconds timeout,
                                       std::stop_token stop) override {
    return timed("connect", [&] { return cloud_->connect(id, timeout, stop); });
  }
  base::Result<base::Done> extend(const std::string& id, base::Seconds timeout,
                                  std::stop_token stop) override {
    return timed("extend", [&] { return cloud_->extend(id, timeout, stop); });
  }
  void start_extend(const std::string& id, base::Seconds timeout, Done done) override {
    cloud_->start_extend(id, timeout, counting("extend", std::move(done)));
  }
  void start_refresh(const std::string& id, base::Seconds timeout, Done done) override {
    cloud_->start_refresh(id, timeout, counting("extend", std::move(done)));
  }

 private:
  Done counting(const char* operation, Done done) {
    return [this, operation, begun = clock_.now(), done = std::move(done)](auto result) {
      count(operation, begun, result);
      done(std::move(result));
    };
  }
  template <typename Call>
  auto timed(const char* operation, Call call) -> decltype(call()) {
    const base::Moment begun = clock_.now();
    auto result = call();
    count(operation, begun, result);
    return result;
  }
  template <typename Result>
  void count(const char* operation, base::Moment begun, const Result& result) {
    const std::string code = result ? "OK" : std::string(base::to_word(result.error().code));
    registry_.counter("sandfleet_provider_requests_total", {operation, code}).add();
    registry_.histogram("sandfleet_provider_request_duration_seconds", {operation})
        .observe(seconds(clock_.now() - begun));
    if (!result && result.error().code == base::ErrorCode::kRateLimited &&
        result.error().retry_after)
      registry_.counter("sandfleet_provider_throttled_total", {"rate"}).add();
  }

  const std::shared_ptr<e2b::Cloud> cloud_;
  const base::Clock& clock_;
  metrics::Registry& registry_;
};

}  // namespace

double seconds(base::Milliseconds time) { return static_cast<double>(time.count()) / 1000; }

metrics::Table metrics_table() {
  metrics::Table table = own_table();
  for (auto& definition : metrics::process_table()) table.push_back(std::move(definition));
  return table;
}

void MetricsObserver::acted(const Action& action, const Outcome& outcome) {
  const char* word = outcome.error ? "failed" : outcome.begun ? "begun" : "done";
  registry_.counter("sandfleet_actions_total", {std::string(name_of(action)), word}).add();
}

void MetricsObserver::became_ready(base::Milliseconds after) {
  registry_.histogram("sandfleet_sandbox_time_to_ready_seconds", {"create"})
      .observe(seconds(after));
}

void MetricsObserver::drifted(std::string_view kind) {
  registry_.counter("sandfleet_drift_total", {std::string(kind)}).add();
}

void MetricsObserver::paused_for_idleness() {
  registry_.counter("sandfleet_idle_pauses_total").add();
}

void MetricsObserver::woke() { registry_.counter("sandfleet_wakes_total").add(); }

std::shared_ptr<e2b::Cloud> measured(std::shared_ptr<e2b::Cloud> cloud, const base::Clock& clock,
                                     metrics::Registry& registry) {
  return std::make_shared<Measured>(std::move(cloud), clock, registry);
}

void watch(metrics::Registry& registry, const Gauges& gauges) {
  metrics::watch_process(registry);
  registry.gauge("sandfleet_build_info", {std::string(base::kVersion)}).set(1);
  registry.before_exposition([&registry, gauges, told = kube::QueueStats{},
                              states = std::map<std::string, double>{}]() mutable {
    const auto queue = gauges.queue.stats();
    const std::vector<std::string> labels = {kQueueName, kQueueName};
    registry.gauge("workqueue_depth", labels).set(static_cast<double>(queue.depth));
    registry.counter("workqueue_adds_total", labels)
        .add(static_cast<double>(queue.adds - told.adds));
    registry.counter("workqueue_retries_total", labels)
        .add(static_cast<double>(queue.retries - told.retries));
    registry.gauge("workqueue_longest_running_processor_seconds", labels)
        .set(seconds(queue.oldest_work));
    registry.gauge("workqueue_unfinished_work_seconds", labels).set(seconds(queue.all_work));
    registry.gauge("controller_runtime_active_workers", {kQueueName})
        .set(static_cast<double>(queue.in_work));
    told = queue;
    const auto engine = gauges.engine.stats();
    registry.gauge("sandfleet_heartbeats").set(static_cast<double>(engine.kept));
    if (engine.margin)
      registry.gauge("sandfleet_heartbeat_margin_seconds").set(seconds(*engine.margin));
    registry.gauge("sandfleet_operations").set(static_cast<double>(gauges.pool.size()));
    registry.gauge("sandfleet_cache_objects").set(static_cast<double>(gauges.memories.size()));
    for (auto& [state, count] : states) count = 0;
    for (const auto& sandbox : gauges.store.sandboxes())
      ++states[sandbox->status.state.empty() ? "Pending" : sandbox->status.state];
    for (const auto& [state, count] : states)
      registry.gauge("sandfleet_sandboxes", {state}).set(count);
  });
}

}  // namespace controller
