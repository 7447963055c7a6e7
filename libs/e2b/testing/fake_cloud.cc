#include "libs/e2b/testing/fake_cloud.h"

#include <algorithm>
#include <cassert>
#include <cstdio>

namespace e2b {
namespace {

using base::Done;
using base::error;
using base::ErrorCode;
using base::Result;
using Created = Result<Handle, CreateFailure>;

constexpr base::Seconds kRetryAfter{1};

base::Error failure_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kNotSent:
      return error(ErrorCode::kUnavailable, "connection refused");
    case Fault::Kind::kRefused503:
      return error(ErrorCode::kUnavailable, "503: refused, try again");
    case Fault::Kind::kRateLimited:
      return {ErrorCode::kRateLimited, "429: rate limit exceeded", kRetryAfter};
    case Fault::Kind::kReplyLost:
    case Fault::Kind::kLate:
      return error(ErrorCode::kUnavailable, "no answer in time");
    default:
      return error(ErrorCode::kUnavailable, "500: internal error");
  }
}

CreateFailure::Kind create_kind_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kNotSent:
      return CreateFailure::Kind::kNotSent;
    case Fault::Kind::kRefused503:
      return CreateFailure::Kind::kCapacity;
    case Fault::Kind::kRateLimited:
      return CreateFailure::Kind::kRate;
    default:
      return CreateFailure::Kind::kAmbiguous;
  }
}

template <typename Outcome>
Outcome failed(Fault::Kind kind) {
  return failure_of(kind);
}
template <>
Created failed<Created>(Fault::Kind kind) {
  return CreateFailure{failure_of(kind), create_kind_of(kind)};
}

base::Error not_found(const std::string& id) {
  return error(ErrorCode::kNotFound, "404: no sandbox ", id);
}

bool matches(const SandboxInfo& info, const Filter& filter) {
  return std::all_of(filter.metadata.begin(), filter.metadata.end(), [&](const auto& pair) {
    const auto found = info.metadata.find(pair.first);
    return found != info.metadata.end() && found->second == pair.second;
  });
}

base::Error cancelled() { return error(ErrorCode::kCancelled, "cancelled"); }

}  // namespace

std::string_view to_word(Operation operation) {
  switch (operation) {
    case Operation::kCreate:
      return "create";
    case Operation::kGet:
      return "get";
    case Operation::kHandle:
      return "handle";
    case Operation::kList:
      return "list";
    case Operation::kKill:
      return "kill";
    case Operation::kPause:
      return "pause";
    case Operation::kConnect:
      return "connect";
    case Operation::kExtend:
      return "extend";
  }
  return "unknown";
}

FakeCloud::FakeCloud(const base::Clock& clock, Callbacks callbacks)
    : clock_(clock), start_(clock.now()), wall_start_(clock.wall()), moment_(start_) {
  if (callbacks == Callbacks::kOwnThread)
    runner_ = std::jthread([this](std::stop_token stop) { run_callbacks_until(stop); });
}

FakeCloud::~FakeCloud() = default;

// --- What a test arranges.

void FakeCloud::script(Operation operation, Fault fault) {
  std::lock_guard lock(mutex_);
  scripted_[operation].push_back(fault);
}

void FakeCloud::chance(Operation operation, Fault fault, double probability) {
  std::lock_guard lock(mutex_);
  chances_.push_back({operation, fault, probability});
}

void FakeCloud::clear_chances() {
  std::lock_guard lock(mutex_);
  chances_.clear();
}

void FakeCloud::seed(std::uint64_t seed) {
  std::lock_guard lock(mutex_);
  random_.seed(seed);
}

void FakeCloud::set_list_lag(base::Milliseconds appear, base::Milliseconds disappear) {
  std::lock_guard lock(mutex_);
  appear_ = appear;
  disappear_ = disappear;
}

void FakeCloud::set_quota(std::size_t running_max) {
  std::lock_guard lock(mutex_);
  quota_ = running_max;
}

void FakeCloud::set_longest_run(base::Milliseconds longest) {
  std::lock_guard lock(mutex_);
  longest_run_ = longest;
}

void FakeCloud::refuse_template(const std::string& template_id) {
  std::lock_guard lock(mutex_);
  refused_templates_.insert(template_id);
}

void FakeCloud::hide_tokens(bool hidden) {
  std::lock_guard lock(mutex_);
  tokens_hidden_ = hidden;
}

void FakeCloud::before(std::function<void(Operation, const std::string&)> hook) {
  std::lock_guard lock(mutex_);
  before_ = std::move(hook);
}

void FakeCloud::after(std::function<void(Operation, const std::string&)> hook) {
  std::lock_guard lock(mutex_);
  after_ = std::move(hook);
}

void FakeCloud::on_change(std::function<void(const std::string&, Change)> hook) {
  std::lock_guard lock(mutex_);
  on_change_ = std::move(hook);
}

std::string FakeCloud::plant(const NewSandbox& wanted) {
  std::string id;
  {
    std::lock_guard lock(mutex_);
    catch_up();
    id = add(wanted).info.id;
  }
  tell_news();
  return id;
}

void FakeCloud::end(const std::string& id) {
  {
    std::lock_guard lock(mutex_);
    catch_up();
    if (Box* box = find_alive(id)) drop(*box, Change::kKilled);
  }
  tell_news();
}

void FakeCloud::pause_by_itself(const std::string& id) {
  {
    std::lock_guard lock(mutex_);
    catch_up();
    Box* box = find_alive(id);
    if (box && box->info.state == State::kRunning) pause_box(*box);
  }
  tell_news();
}

std::size_t FakeCloud::run_callbacks() {
  for (std::size_t ran = 0;; ++ran) {
    std::function<void()> next;
    {
      std::lock_guard lock(mutex_);
      if (callbacks_.empty()) return ran;
      next = std::move(callbacks_.front());
      callbacks_.pop_front();
    }
    next();
  }
}

void FakeCloud::run_callbacks_until(std::stop_token stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      callbacks_waiting_.wait(lock, stop, [&] { return !callbacks_.empty(); });
    }
    run_callbacks();
  }
}

// --- What a test looks at.

std::vector<FakeCloud::Call> FakeCloud::calls() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

std::size_t FakeCloud::count(Operation operation) const {
  std::lock_guard lock(mutex_);
  return std::count_if(calls_.begin(), calls_.end(),
                       [&](const Call& call) { return call.operation == operation; });
}

std::vector<SandboxInfo> FakeCloud::live() {
  std::vector<SandboxInfo> all;
  {
    std::lock_guard lock(mutex_);
    catch_up();
    for (const auto& [id, box] : boxes_)
      if (box.alive) all.push_back(look(box));
  }
  tell_news();
  return all;
}

std::vector<std::string> FakeCloud::live_of(const std::string& uid, const std::string& key) {
  std::vector<std::string> ids;
  for (const SandboxInfo& info : live()) {
    const auto found = info.metadata.find(key);
    if (found != info.metadata.end() && found->second == uid) ids.push_back(info.id);
  }
  return ids;
}

std::optional<SandboxInfo> FakeCloud::find(const std::string& id) {
  for (const SandboxInfo& info : live())
    if (info.id == id) return info;
  return std::nullopt;
}

std::optional<Handle> FakeCloud::truth_of(const std::string& id) {
  std::lock_guard lock(mutex_);
  const Box* box = find_alive(id);
  return box ? std::optional(handle_of(*box)) : std::nullopt;
}

std::optional<NewSandbox> FakeCloud::request_of(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto found = boxes_.find(id);
  if (found == boxes_.end()) return std::nullopt;
  return found->second.wanted;
}

std::size_t FakeCloud::total_created() const {
  std::lock_guard lock(mutex_);
  return boxes_.size();
}

std::vector<FakeCloud::Overlap> FakeCloud::violations(base::Milliseconds tolerated,
                                                      const std::string& key) {
  live();  // Brings the world up to the present.
  std::lock_guard lock(mutex_);
  std::map<std::string, std::vector<const Box*>> by_value;
  for (const auto& [id, box] : boxes_) {
    const auto found = box.info.metadata.find(key);
    if (found != box.info.metadata.end()) by_value[found->second].push_back(&box);
  }
  std::vector<Overlap> overlaps;
  for (const auto& [value, boxes] : by_value)
    for (std::size_t i = 0; i < boxes.size(); ++i)
      for (std::size_t k = i + 1; k < boxes.size(); ++k) {
        const auto from = std::max(boxes[i]->since, boxes[k]->since);
        const auto until = std::min(boxes[i]->gone.value_or(base::Moment::max()),
                                    boxes[k]->gone.value_or(base::Moment::max()));
        if (std::min(until, moment_) - from <= tolerated && until != base::Moment::max()) continue;
        if (until <= from) continue;
        Overlap overlap{value, boxes[i]->info.id, boxes[k]->info.id, from};
        if (until != base::Moment::max()) overlap.until = until;
        overlaps.push_back(overlap);
      }
  return overlaps;
}

base::WallTime FakeCloud::provider_time() const { return wall_at(clock_.now()); }

// --- The world, under the lock.

base::WallTime FakeCloud::wall_at(base::Moment moment) const {
  return wall_start_ + (moment - start_);
}

std::optional<Fault> FakeCloud::draw(Operation operation) {
  auto& scripted = scripted_[operation];
  if (!scripted.empty()) {
    const Fault fault = scripted.front();
    scripted.pop_front();
    return fault;
  }
  for (const Chance& chance : chances_)
    if (chance.operation == operation &&
        std::uniform_real_distribution<double>(0, 1)(random_) < chance.probability)
      return chance.fault;
  return std::nullopt;
}

// Lets everything happen, in order, that is due by now.
void FakeCloud::catch_up() {
  const base::Moment present = std::max(moment_, clock_.now());
  for (;;) {
    const auto late = std::min_element(late_.begin(), late_.end(),
                                       [](const Late& a, const Late& b) { return a.at < b.at; });
    const base::Moment late_at = late == late_.end() ? base::Moment::max() : late->at;
    if (std::min(late_at, next_expiry_) > present) break;
    if (late_at <= next_expiry_) {
      moment_ = late_at;
      const std::function<void()> effect = std::move(late->effect);
      late_.erase(late);
      effect();
      continue;
    }
    moment_ = next_expiry_;
    next_expiry_ = base::Moment::max();
    for (auto& [id, box] : boxes_) {
      if (!box.alive || box.info.state != State::kRunning) continue;
      if (box.lease_end <= moment_)
        expire(box);
      else
        next_expiry_ = std::min(next_expiry_, box.lease_end);
    }
  }
  moment_ = present;
}

// A kill by timeout leaves an older snapshot behind, as the real service does.
void FakeCloud::expire(Box& box) {
  if (box.wanted.auto_pause)
    pause_box(box);
  else
    roll_back(box);
}

FakeCloud::Box* FakeCloud::find_alive(const std::string& id) {
  const auto found = boxes_.find(id);
  return found != boxes_.end() && found->second.alive ? &found->second : nullptr;
}

SandboxInfo FakeCloud::look(const Box& box) const {
  SandboxInfo info = box.info;
  info.started_at = wall_at(box.run_start);
  info.end_at = wall_at(info.state == State::kRunning ? box.lease_end : *box.saved);
  if (info.state == State::kPaused) info.pause_mode = "full";
  return info;
}

void FakeCloud::set_lease(Box& box, base::Seconds timeout) {
  box.lease_end = std::max(box.lease_end, moment_ + timeout);
  if (longest_run_) box.lease_end = std::min(box.lease_end, box.run_start + *longest_run_);
  next_expiry_ = std::min(next_expiry_, box.lease_end);
}

void FakeCloud::become(Box& box, Change change) { news_.push_back({box.info.id, change}); }

void FakeCloud::pause_box(Box& box) {
  box.info.state = State::kPaused;
  box.saved = moment_;
  become(box, Change::kPaused);
}

void FakeCloud::roll_back(Box& box) {
  if (!box.saved) return drop(box, Change::kKilled);
  box.info.state = State::kPaused;
  become(box, Change::kRolledBack);
}

void FakeCloud::drop(Box& box, Change change) {
  box.alive = false;
  box.gone = moment_;
  become(box, change);
}

Handle FakeCloud::handle_of(const Box& box) const {
  const std::string run = box.info.id + "-" + std::to_string(box.run);
  return {.id = box.info.id,
          .envd_version = box.info.envd_version,
          .envd_access_token = "envd-token-" + run,
          .traffic_access_token = "traffic-token-" + run};
}

std::size_t FakeCloud::running_count() const {
  return std::count_if(boxes_.begin(), boxes_.end(), [](const auto& entry) {
    return entry.second.alive && entry.second.info.state == State::kRunning;
  });
}

std::optional<CreateFailure> FakeCloud::objection_to(const NewSandbox& wanted) const {
  using Kind = CreateFailure::Kind;
  if (refused_templates_.contains(wanted.template_id))
    return CreateFailure{
        error(ErrorCode::kNotFound, "404: template '", wanted.template_id, "' not found"),
        Kind::kRefused};
  if (wanted.timeout < base::Seconds(1) || (longest_run_ && wanted.timeout > *longest_run_))
    return CreateFailure{error(ErrorCode::kInvalid, "400: bad timeout"), Kind::kRefused};
  if (quota_ && running_count() >= *quota_)
    return CreateFailure{error(ErrorCode::kRateLimited, "429: too many sandboxes"), Kind::kQuota};
  return std::nullopt;
}

FakeCloud::Box& FakeCloud::add(const NewSandbox& wanted) {
  char id[32];
  std::snprintf(id, sizeof id, "i%020zu", boxes_.size() + 1);
  Box& box = boxes_[id];
  box.info = {.id = id,
              .template_id = wanted.template_id,
              .metadata = wanted.metadata,
              .envd_version = "0.6.13"};
  box.wanted = wanted;
  box.since = box.run_start = moment_;
  set_lease(box, wanted.timeout);
  become(box, Change::kCreated);
  return box;
}

std::vector<SandboxInfo> FakeCloud::listed(const Filter& filter) const {
  std::vector<SandboxInfo> items;
  for (const auto& [id, box] : boxes_) {
    if (moment_ < box.since + appear_) continue;
    if (!box.alive && moment_ >= *box.gone + disappear_) continue;
    SandboxInfo info = look(box);
    if (matches(info, filter)) items.push_back(std::move(info));
  }
  return items;
}

// --- The verbs.

template <typename Outcome>
Outcome FakeCloud::perform(const Verb<Outcome>& verb) {
  const std::optional<Fault> fault = draw(verb.operation);
  if (!fault) return verb.effect();
  if (verb.special)
    if (auto outcome = verb.special(*fault)) return *std::move(outcome);
  if (fault->kind == Fault::Kind::kReplyLost) (void)verb.effect();
  if (fault->kind == Fault::Kind::kLate)
    late_.push_back({moment_ + fault->late, [effect = verb.effect] { (void)effect(); }});
  return failed<Outcome>(fault->kind);
}

template <typename Outcome>
Outcome FakeCloud::call(const Verb<Outcome>& verb) {
  std::function<void(Operation, const std::string&)> before, after;
  {
    std::lock_guard lock(mutex_);
    before = before_;
  }
  if (before) before(verb.operation, verb.id);
  std::string id = verb.id;
  Outcome outcome = [&] {
    std::lock_guard lock(mutex_);
    catch_up();
    const std::size_t boxes = boxes_.size();
    Outcome made = perform(verb);
    if (boxes_.size() > boxes) id = boxes_.rbegin()->first;
    calls_.push_back({verb.operation, id, moment_});
    if (!made.ok()) calls_.back().failed = made.error().code;
    after = after_;
    return made;
  }();
  tell_news();
  if (after) after(verb.operation, id);
  return outcome;
}

void FakeCloud::tell_news() {
  std::vector<News> news;
  std::function<void(const std::string&, Change)> hook;
  {
    std::lock_guard lock(mutex_);
    news.swap(news_);
    hook = on_change_;
  }
  if (!hook) return;
  for (const News& item : news) hook(item.id, item.change);
}

Created FakeCloud::create(const NewSandbox& wanted, std::stop_token stop) {
  if (stop.stop_requested()) return CreateFailure{cancelled(), CreateFailure::Kind::kNotSent};
  return call<Created>({Operation::kCreate, {}, [this, wanted]() -> Created {
                          if (auto objection = objection_to(wanted)) return *objection;
                          return handle_of(add(wanted));
                        }});
}

Result<Told<std::optional<SandboxInfo>>> FakeCloud::get(const std::string& id,
                                                        std::stop_token stop) {
  using Seen = Told<std::optional<SandboxInfo>>;
  using Outcome = Result<Seen>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kGet, id,
                        [this, id]() -> Outcome {
                          const Box* box = find_alive(id);
                          Seen seen{std::nullopt, wall_at(moment_)};
                          if (box) seen.value = look(*box);
                          return seen;
                        },
                        [this](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind != Fault::Kind::kFalseAbsent) return std::nullopt;
                          return Outcome(Seen{std::nullopt, wall_at(moment_)});
                        }});
}

Result<std::optional<Handle>> FakeCloud::handle(const std::string& id, std::stop_token stop) {
  using Outcome = Result<std::optional<Handle>>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kHandle, id,
                        [this, id]() -> Outcome {
                          const Box* box = find_alive(id);
                          if (!box) return not_found(id);
                          if (tokens_hidden_) return std::optional<Handle>();
                          return std::optional<Handle>(handle_of(*box));
                        },
                        [id](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind != Fault::Kind::kFalseAbsent) return std::nullopt;
                          return Outcome(not_found(id));
                        }});
}

Result<Told<std::vector<SandboxInfo>>> FakeCloud::list(const Filter& filter, std::stop_token stop) {
  using Seen = Told<std::vector<SandboxInfo>>;
  using Outcome = Result<Seen>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>(
      {Operation::kList,
       {},
       [this, filter]() -> Outcome { return Seen{listed(filter), wall_at(moment_)}; },
       [this](const Fault& fault) -> std::optional<Outcome> {
         if (fault.kind == Fault::Kind::kFalseAbsent) return Outcome(Seen{{}, wall_at(moment_)});
         if (fault.kind == Fault::Kind::kWrongFilter)
           return Outcome(Seen{listed({}), wall_at(moment_)});
         return std::nullopt;
       }});
}

Result<KillAnswer> FakeCloud::do_kill(const std::string& id) {
  Box* box = find_alive(id);
  if (!box) return KillAnswer::kNotThere;
  drop(*box, Change::kKilled);
  return KillAnswer::kKilled;
}

Result<KillAnswer> FakeCloud::kill(const std::string& id, std::stop_token stop) {
  using Outcome = Result<KillAnswer>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kKill, id, [this, id] { return do_kill(id); },
                        [](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind == Fault::Kind::kFalseAbsent)
                            return Outcome(KillAnswer::kNotThere);
                          if (fault.kind == Fault::Kind::kKept) return Outcome(KillAnswer::kKilled);
                          return std::nullopt;
                        }});
}

Result<PauseAnswer> FakeCloud::do_pause(const std::string& id) {
  Box* box = find_alive(id);
  if (!box) return not_found(id);
  if (box->info.state == State::kPaused) return PauseAnswer::kAlreadyPaused;
  pause_box(*box);
  return PauseAnswer::kPaused;
}

Result<PauseAnswer> FakeCloud::pause(const std::string& id, std::stop_token stop) {
  using Outcome = Result<PauseAnswer>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kPause, id, [this, id] { return do_pause(id); },
                        [this, id](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind == Fault::Kind::kFalseAbsent)
                            return Outcome(not_found(id));
                          if (fault.kind != Fault::Kind::kRolledBack) return std::nullopt;
                          Box* box = find_alive(id);
                          if (box && box->info.state == State::kRunning) roll_back(*box);
                          return Outcome(failure_of(Fault::Kind::kFailed500));
                        }});
}

Result<Connected> FakeCloud::do_connect(const std::string& id, base::Seconds timeout) {
  Box* box = find_alive(id);
  if (!box) return not_found(id);
  if (timeout < base::Seconds(1) || (longest_run_ && timeout > *longest_run_))
    return error(ErrorCode::kInvalid, "400: bad timeout");
  const bool paused = box->info.state == State::kPaused;
  if (paused) {
    if (quota_ && running_count() >= *quota_)
      return error(ErrorCode::kRateLimited, "429: too many sandboxes");
    box->info.state = State::kRunning;
    box->run_start = box->lease_end = moment_;
    ++box->run;
    become(*box, Change::kResumed);
  }
  set_lease(*box, timeout);
  return Connected{handle_of(*box), paused};
}

Result<Connected> FakeCloud::connect(const std::string& id, base::Seconds timeout,
                                     std::stop_token stop) {
  using Outcome = Result<Connected>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kConnect, id,
                        [this, id, timeout] { return do_connect(id, timeout); },
                        [id](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind != Fault::Kind::kFalseAbsent) return std::nullopt;
                          return Outcome(not_found(id));
                        }});
}

Result<Done> FakeCloud::do_extend(const std::string& id, base::Seconds timeout) {
  Box* box = find_alive(id);
  if (!box || box->info.state != State::kRunning) return not_found(id);
  if (timeout < base::Seconds(1)) return error(ErrorCode::kInvalid, "400: bad timeout");
  set_lease(*box, timeout);
  return Done{};
}

Result<Done> FakeCloud::extend(const std::string& id, base::Seconds timeout, std::stop_token stop) {
  using Outcome = Result<Done>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kExtend, id,
                        [this, id, timeout] { return do_extend(id, timeout); },
                        [id](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind != Fault::Kind::kFalseAbsent) return std::nullopt;
                          return Outcome(not_found(id));
                        }});
}

void FakeCloud::start_extend(const std::string& id, base::Seconds timeout,
                             std::function<void(Result<Done>)> done) {
  Result<Done> outcome = extend(id, timeout, {});
  std::lock_guard lock(mutex_);
  callbacks_.push_back([outcome = std::move(outcome), done = std::move(done)] { done(outcome); });
  callbacks_waiting_.notify_one();
}

}  // namespace e2b
