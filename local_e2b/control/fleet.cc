#include "local_e2b/control/fleet.h"

#include <algorithm>

#include "libs/base/crypto.h"
#include "libs/base/log.h"
#include "local_e2b/control/listing.h"

namespace local_e2b {
namespace {

constexpr std::int64_t kWakeSecondsMin = 300;

std::string new_id() {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string id = "i";
  while (id.size() < 21)
    for (const char c : base::random_bytes(32)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 252 && id.size() < 21) id += kAlphabet[byte % 36];
    }
  return id;
}

// Not a 503, which would ask for another try.
Refusal never_paused(const std::string& prefix, const std::string& why) {
  return refuse(400, prefix + "this provider cannot pause sandboxes: " + why);
}

Refusal already_paused(const std::string& id) {
  return refuse(409, "Sandbox \"" + id + "\" is already paused");
}

}  // namespace

Fleet::Fleet(aio::Executor executor, BoxHost& host, const Records& records,
             Connections& connections, const base::Clock& clock, FleetLimits limits)
    : executor_(executor),
      host_(host),
      records_(records),
      connections_(connections),
      clock_(clock),
      limits_(limits),
      leases_changed_(executor),
      work_(std::make_shared<Work>(executor)),
      tasks_(executor) {}

Fleet::EntryPtr Fleet::find_own(const std::string& team, const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second->sandbox.team != team) return nullptr;
  return found->second->sandbox.phase == Phase::kStarting ? nullptr : found->second;
}

const Sandbox* Fleet::find(const std::string& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second->sandbox;
}

Outcome<Sandbox> Fleet::get(const std::string& team, const std::string& id) const {
  const auto entry = find_own(team, id);
  if (!entry || seen_as(entry->sandbox.phase) == Seen::kNothing) return not_found(id);
  return entry->sandbox;
}

std::vector<const Sandbox*> Fleet::of_team(const std::string& team) const {
  std::vector<const Sandbox*> own;
  for (const auto& [id, entry] : entries_)
    if (entry->sandbox.team == team) own.push_back(&entry->sandbox);
  return own;
}

std::vector<Sandbox> Fleet::all() const {
  std::vector<Sandbox> every;
  for (const auto& [id, entry] : entries_) every.push_back(entry->sandbox);
  return every;
}

std::size_t Fleet::occupied() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& each) {
        const Phase phase = each.second->sandbox.phase;
        return phase != Phase::kPaused && phase != Phase::kKilling;
      }));
}

Outcome<base::Done> Fleet::check_room() const {
  if (occupied() < limits_.sandboxes_max) return base::Done{};
  return refuse(429, "you have reached the maximum number of concurrent sandboxes (" +
                         std::to_string(limits_.sandboxes_max) + ")");
}

base::Result<base::Done> Fleet::write_down(const Entry& entry) const {
  Sandbox on_record = entry.sandbox;
  if (entry.due) {
    on_record.phase = entry.due->phase;
    on_record.end_at = entry.due->end_at;
  }
  return records_.save(on_record);
}

void Fleet::save(const Entry& entry) {
  const auto saved = write_down(entry);
  if (!saved)
    base::log::error("cannot write a sandbox's record",
                     {{"sandbox", entry.sandbox.id}, {"error", saved.error()}});
}

void Fleet::forget(const EntryPtr& entry) {
  const std::string id = entry->sandbox.id;
  records_.remove(id);
  leases_.remove(id);
  entries_.erase(id);
  connections_.cut(id);
}

// The phase is on record before the deed; a deed that could not be written down is not begun.
Outcome<base::Done> Fleet::begin(Entry& entry, Phase phase) {
  const Phase before = entry.sandbox.phase;
  entry.sandbox.phase = phase;
  const auto saved = write_down(entry);
  if (!saved) {
    entry.sandbox.phase = before;
    return refuse(503, "the provider cannot write its state: " + saved.error().message);
  }
  entry.operation = std::make_shared<Operation>();
  return base::Done{};
}

Outcome<base::Done> Fleet::finish(Entry& entry, Phase phase, Outcome<base::Done> outcome) {
  entry.sandbox.phase = phase;
  if (outcome) entry.due.reset();
  save(entry);
  entry.operation->outcome = outcome;
  entry.changed.notify_all();
  return outcome;
}

Fleet::Deed Fleet::join(EntryPtr entry) {
  const auto operation = entry->operation;
  while (!operation->outcome) co_await entry->changed.wait();
  co_return *operation->outcome;
}

void Fleet::start_run(Sandbox& sandbox, std::int64_t timeout_seconds) {
  sandbox.started_at = clock_.wall();
  sandbox.end_at = sandbox.started_at + base::Seconds(timeout_seconds);
  leases_.set(sandbox.id, clock_.now() + base::Seconds(timeout_seconds));
  leases_changed_.notify_all();
}

// ---- create

aio::Task<Outcome<Sandbox>> Fleet::create(std::string team, CreateRequest request) {
  const auto no_pause = host_.objection_to_freeze();
  if (request.auto_pause && no_pause)
    co_return never_paused("autoPause must be false, as ", *no_pause);
  CO_CHECK_OK(check_room());
  Sandbox sandbox;
  sandbox.id = new_id();
  sandbox.team = std::move(team);
  sandbox.template_id = request.template_id;
  sandbox.metadata = std::move(request.metadata);
  sandbox.auto_pause = request.auto_pause;
  sandbox.auto_resume = request.auto_resume;
  sandbox.timeout_seconds = request.timeout_seconds;
  sandbox.allow_internet_access = request.allow_internet_access;
  sandbox.allow_public_traffic = request.allow_public_traffic;
  sandbox.network = std::move(request.network);
  sandbox.started_at = sandbox.end_at = clock_.wall();
  sandbox.envd_token = base::random_hex(32);
  if (!sandbox.allow_public_traffic) sandbox.traffic_token = base::random_hex(32);
  sandbox.idempotency_key = std::move(request.idempotency_key);
  sandbox.idempotency_fingerprint = std::move(request.idempotency_fingerprint);

  const auto entry = std::make_shared<Entry>(std::move(sandbox), executor_);
  CO_CHECK_OK(begin(*entry, Phase::kStarting));
  entries_[entry->sandbox.id] = entry;
  CO_CHECK_OK(co_await build(entry, std::move(request.env)));
  co_return entry->sandbox;
}

Fleet::Deed Fleet::build(EntryPtr entry, std::map<std::string, std::string> env) {
  const Busy busy(work_);
  Sandbox& sandbox = entry->sandbox;
  BoxSpec spec{.id = sandbox.id, .executor_baked_in = sandbox.template_id == "base-executor"};
  const auto box = co_await host_.create(std::move(spec));
  if (!box) co_return co_await undo_create(entry, box.error().message);
  sandbox.box = *box;
  save(*entry);
  EnvdInit init{.access_token = sandbox.envd_token, .env = std::move(env), .set_env = true};
  const auto version = co_await host_.init(*box, std::move(init));
  if (!version) co_return co_await undo_create(entry, version.error().message);
  sandbox.envd_version = *version;
  start_run(sandbox, sandbox.timeout_seconds);
  sandbox.phase = Phase::kRunning;
  if (const auto saved = write_down(*entry); !saved) {
    // By its record it never started, so the next server would destroy what was promised.
    sandbox.phase = Phase::kStarting;
    co_return co_await undo_create(entry, saved.error().message);
  }
  base::log::info("sandbox created", {{"sandbox", sandbox.id}, {"template", sandbox.template_id}});
  entry->operation->outcome = Outcome<base::Done>(base::Done{});
  entry->changed.notify_all();
  co_return base::Done{};
}

Fleet::Deed Fleet::undo_create(EntryPtr entry, std::string why) {
  base::log::error("a sandbox could not be created",
                   {{"sandbox", entry->sandbox.id}, {"error", why}});
  const Refusal failed =
      refuse(500, "Failed to create the sandbox: " + why, "sandbox_create_failed");
  if (entry->sandbox.box && !co_await host_.destroy(*entry->sandbox.box)) {
    tasks_.spawn(retry_kill(entry));
    co_return finish(*entry, Phase::kKilling, failed);
  }
  forget(entry);
  co_return failed;
}

// ---- kill

aio::Task<Outcome<base::Done>> Fleet::kill(std::string team, std::string id) {
  for (;;) {
    const auto entry = find_own(team, id);
    if (!entry) co_return not_found(id);
    switch (entry->sandbox.phase) {
      case Phase::kKilling:
        co_return co_await join(entry);
      case Phase::kResuming:
        co_return refuse(409, "Sandbox \"" + id + "\" is resuming; retry");
      case Phase::kPausing:
        co_await entry->changed.wait();
        continue;
      default:
        co_return co_await do_kill(entry);
    }
  }
}

Fleet::Deed Fleet::do_kill(EntryPtr entry) {
  const Busy busy(work_);
  const std::string id = entry->sandbox.id;
  // Done even when it cannot be written down: on a full disk this is what makes room, and whoever
  // asked is told only once it is done.
  entry->sandbox.phase = Phase::kKilling;
  entry->due.reset();
  save(*entry);
  entry->operation = std::make_shared<Operation>();
  leases_.remove(id);
  connections_.cut(id);
  const auto destroyed = co_await host_.destroy(*entry->sandbox.box);
  if (!destroyed) {
    base::log::error("a sandbox could not be destroyed; trying again",
                     {{"sandbox", id}, {"error", destroyed.error()}});
    tasks_.spawn(retry_kill(entry));
    co_return finish(*entry, Phase::kKilling,
                     refuse(500, "Error killing sandbox: " + destroyed.error().message));
  }
  forget(entry);
  entry->operation->outcome = Outcome<base::Done>(base::Done{});
  entry->changed.notify_all();
  base::log::info("sandbox killed", {{"sandbox", id}});
  co_return base::Done{};
}

aio::Task<> Fleet::destroy_at_last(BoxRecord box) {
  const Busy busy(work_);
  while (!co_await host_.destroy(box)) co_await aio::sleep_for(limits_.retry);
}

aio::Task<> Fleet::retry_kill(EntryPtr entry) {
  co_await destroy_at_last(*entry->sandbox.box);
  forget(entry);
}

// ---- pause

aio::Task<Outcome<base::Done>> Fleet::pause(std::string team, std::string id) {
  for (;;) {
    const auto entry = find_own(team, id);
    if (!entry) co_return not_found(id);
    switch (entry->sandbox.phase) {
      case Phase::kStarting:
      case Phase::kKilling:
        co_return not_found(id);
      case Phase::kPaused:
        co_return already_paused(id);
      case Phase::kPausing:
        co_return co_await join(entry);
      case Phase::kResuming:
        co_await entry->changed.wait();
        continue;
      case Phase::kRunning:
        if (const auto objection = host_.objection_to_freeze(&*entry->sandbox.box))
          co_return never_paused("", *objection);
        co_return co_await do_pause(entry);
    }
  }
}

Fleet::Deed Fleet::do_pause(EntryPtr entry) {
  const Busy busy(work_);
  Sandbox& sandbox = entry->sandbox;
  CO_CHECK_OK(begin(*entry, Phase::kPausing));
  connections_.cut(sandbox.id);
  const auto frozen = co_await host_.freeze(*sandbox.box);
  if (!frozen) {
    base::log::error("a sandbox could not be paused",
                     {{"sandbox", sandbox.id}, {"error", frozen.error()}});
    const auto thawed = co_await host_.thaw(*sandbox.box);  // Running, as the 503 says.
    const auto refused = finish(*entry, Phase::kRunning,
                                refuse(503, "Error pausing sandbox: " + frozen.error().message));
    if (!thawed && !entry->due) show_as_it_is(entry, thawed.error());
    co_return refused;
  }
  leases_.remove(sandbox.id);
  sandbox.end_at = clock_.wall();
  base::log::info("sandbox paused", {{"sandbox", sandbox.id}});
  co_return finish(*entry, Phase::kPaused, base::Done{});
}

// ---- connect and resume

aio::Task<Outcome<Fleet::Connected>> Fleet::connect(std::string team, std::string id,
                                                    ConnectRequest request) {
  for (;;) {
    const auto entry = find_own(team, id);
    if (!entry) co_return not_found(id);
    switch (entry->sandbox.phase) {
      case Phase::kStarting:
        co_return not_found(id);
      case Phase::kKilling:
        co_return refuse(409, "Sandbox \"" + id + "\" is being killed");
      case Phase::kPausing:
        co_await entry->changed.wait();
        continue;
      case Phase::kRunning: {
        CO_CHECK_OK(lease(*entry, request.timeout_seconds, false));
        co_return Connected{entry->sandbox, false};
      }
      case Phase::kPaused: {
        CO_CHECK_OK(co_await do_resume(entry, request.timeout_seconds));
        co_return Connected{entry->sandbox, true};
      }
      case Phase::kResuming: {
        CO_CHECK_OK(co_await join(entry));
        if (entry->sandbox.phase != Phase::kRunning) continue;
        CO_CHECK_OK(lease(*entry, request.timeout_seconds, false));
        co_return Connected{entry->sandbox, true};
      }
    }
  }
}

aio::Task<Outcome<Sandbox>> Fleet::resume(std::string team, std::string id,
                                          ConnectRequest request) {
  for (;;) {
    const auto entry = find_own(team, id);
    if (!entry || entry->sandbox.phase == Phase::kKilling) co_return not_found(id);
    switch (entry->sandbox.phase) {
      case Phase::kPausing:
        co_await entry->changed.wait();
        continue;
      case Phase::kPaused: {
        CO_CHECK_OK(co_await do_resume(entry, request.timeout_seconds));
        co_return entry->sandbox;
      }
      case Phase::kResuming:
        co_return refuse(409, "Sandbox \"" + id + "\" is being started already",
                         "sandbox_start_in_flight");
      default:
        co_return refuse(409, "Sandbox \"" + id + "\" is already running");
    }
  }
}

Fleet::Deed Fleet::do_resume(EntryPtr entry, std::int64_t timeout_seconds) {
  const Busy busy(work_);
  Sandbox& sandbox = entry->sandbox;
  CO_CHECK_OK(check_room());
  CO_CHECK_OK(begin(*entry, Phase::kResuming));
  const auto thawed = co_await host_.thaw(*sandbox.box);
  if (!thawed) co_return co_await resume_failed(entry, thawed.error());
  EnvdInit init{.access_token = sandbox.envd_token};
  const auto version = co_await host_.init(*sandbox.box, std::move(init));
  if (!version) co_return co_await resume_failed(entry, version.error());
  sandbox.envd_version = *version;
  start_run(sandbox, timeout_seconds);
  base::log::info("sandbox resumed", {{"sandbox", sandbox.id}});
  co_return finish(*entry, Phase::kRunning, base::Done{});
}

// Paused again, for another try; gone when its box died.
Fleet::Deed Fleet::resume_failed(EntryPtr entry, base::Error why) {
  const std::string id = entry->sandbox.id;
  base::log::error("a sandbox could not be resumed", {{"sandbox", id}, {"error", why}});
  std::vector<BoxRecord> boxes(1, *entry->sandbox.box);
  const auto dead = co_await host_.dead_of(std::move(boxes));
  if (dead.empty()) {
    const auto frozen = co_await host_.freeze(*entry->sandbox.box);
    const auto refused =
        finish(*entry, Phase::kPaused, refuse(503, "Error resuming sandbox: " + why.message));
    if (!frozen && !entry->due) show_as_it_is(entry, frozen.error());
    co_return refused;
  }
  const Refusal gone = not_found(id);
  entry->operation->outcome = Outcome<base::Done>(gone);
  entry->changed.notify_all();
  (void)co_await do_kill(entry);
  co_return gone;
}

aio::Task<Outcome<base::Done>> Fleet::wake(std::string id) {
  const Sandbox* sandbox = find(id);
  if (!sandbox) co_return not_found(id);
  const std::int64_t seconds =
      std::max(std::min(sandbox->timeout_seconds, limits_.run_seconds_max), kWakeSecondsMin);
  ConnectRequest request{.timeout_seconds = std::min(seconds, limits_.run_seconds_max)};
  const std::string team = sandbox->team;
  CO_CHECK_OK(co_await connect(team, id, request));
  co_return base::Done{};
}

}  // namespace local_e2b
