#include "controller/controller.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "controller/metrics.h"
#include "libs/api/reasons.h"
#include "libs/base/log.h"
#include "libs/base/rest.h"

namespace controller {
namespace {

constexpr base::Milliseconds kPollRetryMin{1'000};
// So long a provider may take over a create (docs/design/provider-wire.md).
constexpr base::Seconds kSlowestCreate{70};
constexpr base::Milliseconds kRecordMax{15'000};  // For writes at the end, if the store is slow.
constexpr base::Milliseconds kListFirst{3'000};
constexpr int kPassesInTurnMax = 16;

std::set<std::string> names_of(
    const std::vector<std::shared_ptr<const api::SandboxProvider>>& providers) {
  std::set<std::string> names;
  for (const auto& provider : providers) names.insert(provider->metadata.key.name);
  return names;
}

bool is_of_its_key(std::string_view reason) {
  return reason == api::reason::kCredentialsRejected ||
         reason == api::reason::kCredentialsMissing || reason == api::reason::kCredentialsInvalid;
}

std::string warning_of(const api::ProviderSpec& spec) {
  if (spec.settle >= kSlowestCreate) return "";
  return "spec.settleSeconds is " + std::to_string(spec.settle.count()) +
         ", and providers may take " + std::to_string(kSlowestCreate.count()) +
         " s over a create: two sandboxes may live for a while where there should be one";
}

const char* word_of(const kube::Requeue& requeue) {
  if (requeue.failed) return "error";
  return requeue.after ? "requeue_after" : "success";
}

}  // namespace

void queue_first_look(kube::Queue& queue, const api::Sandbox& sandbox) {
  const bool bound = !sandbox.status.sandbox_id.empty() && !sandbox.deleting();
  queue.add_after(sandbox.metadata.key, bound ? kListFirst : base::Milliseconds(0));
}

void queue_what_waits_for_room(kube::Queue& queue, const api::ResourceStore& store,
                               const std::string& provider) {
  for (const auto& sandbox : store.sandboxes_of(provider))
    if (sandbox->status.sandbox_id.empty()) queue.add(sandbox->metadata.key);
}

Engine::News heartbeat_news(metrics::Registry& registry, Memories& memories,
                            const api::ResourceStore& store, kube::Queue& queue,
                            const base::Clock& clock) {
  return {
      .sent =
          [&registry](base::Milliseconds lateness) {
            registry.histogram("sandfleet_heartbeat_lateness_seconds").observe(seconds(lateness));
          },
      .missed =
          [&](const std::string& uid) {
            memories.update(uid, [&](Memory& memory) { outdate(memory, clock.now()); });
            if (const auto sandbox = store.find_by_uid(uid)) queue.add(sandbox->metadata.key);
          }};
}

std::function<void(const api::Sandbox&)> news_of_failed_ways(Memories& memories, kube::Queue& queue,
                                                             const base::Clock& clock) {
  return [&](const api::Sandbox& sandbox) {
    const std::string& uid = sandbox.metadata.uid;
    if (memories.recall(uid).executor.kind != ExecutorView::Kind::kAnswering) return;
    memories.update(uid, [&](Memory& memory) {
      memory.executor = due_at_once(std::move(memory.executor), clock.now());
    });
    queue.add(sandbox.metadata.key);
  };
}

Controller::Controller(Parts parts, Pace pace) : parts_(parts), pace_(pace) {}
Controller::~Controller() { stop(); }

void Controller::start() {
  parts_.registry.gauge("controller_runtime_max_concurrent_reconciles", {kQueueName})
      .set(static_cast<double>(pace_.workers));
  for (const auto& sandbox : parts_.store.sandboxes()) queue_first_look(parts_.queue, *sandbox);
  heart_ = std::jthread([this](std::stop_token stop) { parts_.engine.run(stop); });
  threads_.emplace_back([this](std::stop_token stop) { keep_rhythm(stop); });
  for (std::size_t i = 0; i < pace_.workers; ++i)
    threads_.emplace_back([this](std::stop_token stop) { work(stop); });
  working_ = true;
}

void Controller::stop() { end(pace_.finish); }
void Controller::leave() { end(base::Milliseconds(0)); }

void Controller::end(base::Milliseconds finish) {
  if (!working_.exchange(false)) return;
  for (auto& thread : threads_) thread.request_stop();
  threads_.clear();
  parts_.pool.drain(finish);
  const base::Moment until = parts_.clock.now() + std::min(finish, kRecordMax);
  // What the last operations made is put on record: a create that finished is bound. No create is
  // meant any more: an intent that nobody sent would keep the next one waiting until it settles.
  while (parts_.clock.now() < until) {
    const auto key = parts_.queue.try_next();
    if (!key) break;
    const auto sandbox = parts_.store.find_sandbox(*key);
    if (sandbox && api::attempt_of(sandbox->metadata)) parts_.reconciler.reconcile(*key);
    parts_.queue.done(*key, {});
  }
  heart_ = {};
}

std::string Controller::trouble() const { return working_ ? "" : "not working yet, or no longer"; }

// One worker. The queue never hands the same key to two workers at once.
void Controller::work(std::stop_token stop) {
  while (const auto key = parts_.queue.next(stop)) {
    const base::Moment begun = parts_.clock.now();
    parts_.registry.histogram("workqueue_queue_duration_seconds", {kQueueName, kQueueName})
        .observe(seconds(parts_.queue.waited(*key)));
    const kube::Requeue requeue = take_turn(*key);
    const double took = seconds(parts_.clock.now() - begun);
    parts_.registry.histogram("workqueue_work_duration_seconds", {kQueueName, kQueueName})
        .observe(took);
    parts_.registry.histogram("controller_runtime_reconcile_time_seconds", {kQueueName})
        .observe(took);
    parts_.registry.counter("controller_runtime_reconcile_total", {kQueueName, word_of(requeue)})
        .add();
    if (requeue.failed)
      parts_.registry.counter("controller_runtime_reconcile_errors_total", {kQueueName}).add();
    parts_.queue.done(*key, requeue);
  }
}

// As many passes as follow at once upon each other: who has just done one step need not stand in
// line for the next. Also at the end: the create that was meant a moment ago is begun.
kube::Requeue Controller::take_turn(const api::Key& key) {
  kube::Requeue requeue = parts_.reconciler.reconcile(key);
  for (int passes = 1; passes < kPassesInTurnMax; ++passes) {
    if (requeue.failed || requeue.after != base::Milliseconds(0)) break;
    requeue = parts_.reconciler.reconcile(key);
  }
  return requeue;
}

void Controller::keep_rhythm(std::stop_token stop) {
  struct Due {
    base::Moment poll = {}, sweep = {};
    base::Milliseconds retry = kPollRetryMin;
  };
  std::map<std::string, Due> dues;  // Of the providers that there are.
  while (!stop.stop_requested()) {
    const std::set<std::string> news = parts_.provider_news.take();
    for (const auto& name : news) dues[name].poll = {};
    const auto providers = parts_.store.providers();
    const std::set<std::string> names = names_of(providers);
    if (std::erase_if(dues, [&](const auto& due) { return !names.contains(due.first); }) > 0)
      forget_all_but(names);
    for (const auto& provider : providers) {
      const std::string& name = provider->metadata.key.name;
      if (!parts_.mandate.may_act(name)) continue;
      Due& due = dues[name];
      if (due.sweep == base::Moment{}) due.sweep = parts_.clock.now() + pace_.sweep;
      if (parts_.clock.now() >= due.poll) {
        const bool polled = poll(name, stop);
        due.retry = polled ? kPollRetryMin : std::min(pace_.poll, due.retry * 2);
        due.poll = parts_.clock.now() + (polled ? pace_.poll : due.retry);
      }
      if (news.contains(name)) wake_all_of(name);
      if (parts_.clock.now() >= due.sweep) {
        sweep(name, stop);
        due.sweep = parts_.clock.now() + pace_.sweep;
      }
    }
    for (const auto& name : news)
      if (!names.contains(name)) wake_all_of(name);
    base::rest(base::Milliseconds(200), stop);
  }
}

// Heartbeats and operations that are under way keep hold of what they use.
void Controller::forget_all_but(const std::set<std::string>& providers) {
  parts_.connections.keep_only(providers);
  parts_.sweeper.keep_only(providers);
}

// Those whose sandboxes are not as they were are looked at, unless a GET has shown them so already;
// after the first list, all are.
bool Controller::poll(const std::string& provider, std::stop_token stop) {
  const auto session = parts_.connections.session(provider);
  const bool first = !session || !session->polled;
  const auto changed = parts_.connections.poll(provider, stop);
  if (!stop.stop_requested()) tell_provider(provider, changed);
  hold_provider(provider, changed.ok());
  if (!changed) {
    base::log::warn("cannot list a provider", {{"provider", provider}, {"error", changed.error()}});
    return false;
  }
  if (first) {
    wake_all_of(provider);
    return true;
  }
  const auto now = parts_.connections.session(provider);
  for (const std::string& uid : *changed) {
    if (now && now->polled && is_as_got(parts_.memories.recall(uid), now->polled->of(uid)))
      continue;
    if (const auto sandbox = parts_.store.find_by_uid(uid)) parts_.queue.add(sandbox->metadata.key);
  }
  return true;
}

// A provider that is deleted stays while something needs it: a Sandbox that refers to it, or
// something of ours in its list that nobody has let go.
void Controller::hold_provider(const std::string& name, bool polled) {
  const auto provider = parts_.store.find_provider(name);
  if (!provider) return;
  const bool deleted = provider->metadata.deleted.has_value();
  if (deleted && !polled) return;  // Nobody knows what is left there.
  const auto held =
      parts_.store.hold_provider(name, provider->metadata.uid, !deleted || is_in_use(name));
  if (!held)
    base::log::warn("cannot hold or let go a provider",
                    {{"provider", name}, {"error", held.error()}});
}

bool Controller::is_in_use(const std::string& provider) const {
  if (!parts_.store.sandboxes_of(provider).empty()) return true;
  const auto session = parts_.connections.session(provider);
  const auto releases = parts_.store.releases(provider);
  if (!session || !session->polled || !releases) return true;
  std::set<std::string> released;
  for (const auto& release : *releases) released.insert(release.sandbox_id);
  return std::ranges::any_of(session->polled->sandboxes, [&](const Sighting& sandbox) {
    return !released.contains(sandbox.id);
  });
}

void Controller::wake_all_of(const std::string& provider) {
  for (const auto& sandbox : parts_.store.sandboxes_of(provider)) {
    parts_.memories.update(sandbox->metadata.uid, [](Memory& memory) { memory.held = {}; });
    parts_.queue.add(sandbox->metadata.key);
  }
}

void Controller::tell_provider(const std::string& name, const Poll& polled) {
  const auto provider = parts_.store.find_provider(name);
  if (!provider) return;
  const std::string problem = polled ? "" : polled.error().reason;
  api::ProviderStatus status = provider->status;
  status.observed_generation = provider->metadata.generation;
  const std::string why = polled ? "" : polled.error().message;
  const auto set = [&](std::string_view type, const char* word, std::string_view reason,
                       const std::string& message) {
    api::set_condition(status.conditions, {.type = std::string(type),
                                           .status = word,
                                           .reason = std::string(reason),
                                           .message = message,
                                           .observed_generation = provider->metadata.generation,
                                           .last_transition = parts_.clock.wall()});
  };
  set(api::condition::kReady, polled ? "True" : "False", polled ? api::reason::kReady : problem,
      polled ? warning_of(provider->spec) : why);
  set(api::condition::kCredentialsValid,
      polled                   ? "True"
      : is_of_its_key(problem) ? "False"
                               : "Unknown",
      polled ? api::reason::kCredentialsAccepted : problem, why);
  if (status == provider->status) return;
  const auto told = parts_.store.update_provider_status(
      name, {provider->metadata.uid, provider->metadata.resource_version}, status);
  if (!told) base::log::warn("cannot write a provider's status", {{"error", told.error()}});
}

void Controller::sweep(const std::string& provider, std::stop_token stop) {
  const base::Moment begun = parts_.clock.now();
  const auto swept = parts_.sweeper.sweep(provider, stop);
  if (!swept)
    return base::log::warn("a sweep failed", {{"provider", provider}, {"error", swept.error()}});
  auto& registry = parts_.registry;
  registry.histogram("sandfleet_orphan_sweep_duration_seconds")
      .observe(seconds(parts_.clock.now() - begun));
  registry.gauge("sandfleet_orphan_sweep_last_success_timestamp_seconds", {provider})
      .set(static_cast<double>(parts_.clock.wall().time_since_epoch().count()) / 1000);
  registry.counter("sandfleet_orphans_found_total", {"orphan"})
      .add(static_cast<double>(swept->orphans));
  registry.counter("sandfleet_orphans_found_total", {"surplus"})
      .add(static_cast<double>(swept->surplus));
  registry.counter("sandfleet_orphans_killed_total").add(static_cast<double>(swept->killed));
}

}  // namespace controller
