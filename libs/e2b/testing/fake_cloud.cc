#include "libs/e2b/testing/fake_cloud.h"

#include <algorithm>

namespace e2b {
namespace {

using base::Done;
using base::Result;
using Created = Result<Handle, CreateFailure>;

template <typename Outcome>
Outcome failed(Fault::Kind kind) {
  return failure_of(kind);
}
template <>
Created failed<Created>(Fault::Kind kind) {
  return create_failure_of(kind);
}

base::Error cancelled() { return {base::ErrorCode::kCancelled, "cancelled"}; }

base::Error not_found(const std::string& id) {
  return base::error(base::ErrorCode::kNotFound, "404: no sandbox ", id);
}

template <typename Outcome>
std::optional<Outcome> falsely_not_found(const std::string& id, const Fault& fault) {
  if (fault.kind != Fault::Kind::kFalseAbsent) return std::nullopt;
  return Outcome(not_found(id));
}

}  // namespace

FakeCloud::FakeCloud(const base::Clock& clock, Callbacks callbacks) : sandboxes_(clock) {
  if (callbacks == Callbacks::kOwnThread)
    runner_ = std::jthread([this](std::stop_token stop) { run_callbacks_until(stop); });
}

FakeCloud::~FakeCloud() = default;

// --- What a test arranges.

void FakeCloud::script(Operation operation, Fault fault) {
  std::lock_guard lock(mutex_);
  faults_.script(operation, fault);
}

void FakeCloud::chance(Operation operation, Fault fault, double probability) {
  std::lock_guard lock(mutex_);
  faults_.chance(operation, fault, probability);
}

void FakeCloud::clear_chances() {
  std::lock_guard lock(mutex_);
  faults_.clear_chances();
}

void FakeCloud::seed(std::uint64_t seed) {
  std::lock_guard lock(mutex_);
  faults_.seed(seed);
}

void FakeCloud::set_list_lag(base::Milliseconds appear, base::Milliseconds disappear) {
  std::lock_guard lock(mutex_);
  sandboxes_.set_list_lag(appear, disappear);
}

void FakeCloud::set_quota(std::size_t running_max) {
  std::lock_guard lock(mutex_);
  sandboxes_.set_quota(running_max);
}

void FakeCloud::set_longest_run(base::Milliseconds longest) {
  std::lock_guard lock(mutex_);
  sandboxes_.set_longest_run(longest);
}

void FakeCloud::refuse_template(const std::string& template_id, bool refused) {
  std::lock_guard lock(mutex_);
  sandboxes_.refuse_template(template_id, refused);
}

void FakeCloud::hide_tokens(bool hidden) {
  std::lock_guard lock(mutex_);
  sandboxes_.hide_tokens(hidden);
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

template <typename Look>
auto FakeCloud::at_present(Look look) {
  auto seen = [&] {
    std::lock_guard lock(mutex_);
    sandboxes_.catch_up();
    return look();
  }();
  tell_news();
  return seen;
}

std::string FakeCloud::plant(const NewSandbox& wanted) {
  return at_present([&] { return sandboxes_.plant(wanted); });
}

void FakeCloud::end(const std::string& id) {
  at_present([&] { return sandboxes_.kill(id); });
}

void FakeCloud::pause_by_itself(const std::string& id) {
  (void)at_present([&] { return sandboxes_.pause(id); });
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
  return static_cast<std::size_t>(std::ranges::count(calls_, operation, &Call::operation));
}

std::vector<SandboxInfo> FakeCloud::live() {
  return at_present([&] { return sandboxes_.live(); });
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
  return at_present([&] { return sandboxes_.get(id).value; });
}

std::optional<Handle> FakeCloud::truth_of(const std::string& id) {
  std::lock_guard lock(mutex_);
  return sandboxes_.truth_of(id);
}

std::optional<NewSandbox> FakeCloud::request_of(const std::string& id) const {
  std::lock_guard lock(mutex_);
  return sandboxes_.request_of(id);
}

std::size_t FakeCloud::total_created() const {
  std::lock_guard lock(mutex_);
  return sandboxes_.total();
}

std::vector<FakeCloud::Overlap> FakeCloud::violations(base::Milliseconds tolerated,
                                                      const std::string& key) {
  return at_present([&] { return sandboxes_.overlaps(tolerated, key); });
}

base::WallTime FakeCloud::provider_time() const { return sandboxes_.provider_time(); }

// --- How a call is made.

template <typename Outcome>
Outcome FakeCloud::perform(const Verb<Outcome>& verb) {
  const std::optional<Fault> fault = faults_.draw(verb.operation);
  if (!fault) return verb.effect();
  if (verb.special)
    if (auto outcome = verb.special(*fault)) return *std::move(outcome);
  if (fault->kind == Fault::Kind::kReplyLost) (void)verb.effect();
  if (fault->kind == Fault::Kind::kLate)
    sandboxes_.add_late(fault->late, [effect = verb.effect] { (void)effect(); });
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
    sandboxes_.catch_up();
    const std::size_t before_it = sandboxes_.total();
    Outcome made = perform(verb);
    if (sandboxes_.total() > before_it) id = sandboxes_.newest();
    calls_.push_back({verb.operation, id, sandboxes_.moment()});
    if (!made.ok()) calls_.back().failed = made.error().code;
    after = after_;
    return made;
  }();
  tell_news();
  if (after) after(verb.operation, id);
  return outcome;
}

void FakeCloud::tell_news() {
  std::vector<FakeSandboxes::News> news;
  std::function<void(const std::string&, Change)> hook;
  {
    std::lock_guard lock(mutex_);
    news = sandboxes_.take_news();
    hook = on_change_;
  }
  if (!hook) return;
  for (const auto& item : news) hook(item.id, item.change);
}

// --- The calls.

Created FakeCloud::create(const NewSandbox& wanted, std::stop_token stop) {
  if (stop.stop_requested()) return CreateFailure{cancelled(), CreateFailure::Kind::kNotSent};
  return call<Created>(
      {Operation::kCreate, {}, [this, wanted] { return sandboxes_.create(wanted); }});
}

Result<Told<std::optional<SandboxInfo>>> FakeCloud::get(const std::string& id,
                                                        std::stop_token stop) {
  using Seen = Told<std::optional<SandboxInfo>>;
  using Outcome = Result<Seen>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kGet, id, [this, id] { return Outcome(sandboxes_.get(id)); },
                        [this](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind != Fault::Kind::kFalseAbsent) return std::nullopt;
                          return Outcome(Seen{std::nullopt, sandboxes_.provider_time()});
                        }});
}

Result<std::optional<Handle>> FakeCloud::handle(const std::string& id, std::stop_token stop) {
  using Outcome = Result<std::optional<Handle>>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>(
      {Operation::kHandle, id, [this, id] { return sandboxes_.handle(id); },
       [id](const Fault& fault) { return falsely_not_found<Outcome>(id, fault); }});
}

Result<Told<std::vector<SandboxInfo>>> FakeCloud::list(const Filter& filter, std::stop_token stop) {
  using Seen = Told<std::vector<SandboxInfo>>;
  using Outcome = Result<Seen>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kList,
                        {},
                        [this, filter] { return Outcome(sandboxes_.list(filter)); },
                        [this](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind == Fault::Kind::kFalseAbsent)
                            return Outcome(Seen{{}, sandboxes_.provider_time()});
                          if (fault.kind == Fault::Kind::kWrongFilter)
                            return Outcome(sandboxes_.list({}));
                          return std::nullopt;
                        }});
}

Result<KillAnswer> FakeCloud::kill(const std::string& id, std::stop_token stop) {
  using Outcome = Result<KillAnswer>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kKill, id, [this, id] { return Outcome(sandboxes_.kill(id)); },
                        [](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind == Fault::Kind::kFalseAbsent)
                            return Outcome(KillAnswer::kNotThere);
                          if (fault.kind == Fault::Kind::kKept) return Outcome(KillAnswer::kKilled);
                          return std::nullopt;
                        }});
}

Result<PauseAnswer> FakeCloud::pause(const std::string& id, std::stop_token stop) {
  using Outcome = Result<PauseAnswer>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>({Operation::kPause, id, [this, id] { return sandboxes_.pause(id); },
                        [this, id](const Fault& fault) -> std::optional<Outcome> {
                          if (fault.kind == Fault::Kind::kKept)
                            return Outcome(PauseAnswer::kPaused);
                          if (fault.kind != Fault::Kind::kRolledBack)
                            return falsely_not_found<Outcome>(id, fault);
                          sandboxes_.lose_run(id);
                          return Outcome(failure_of(Fault::Kind::kFailed500));
                        }});
}

Result<Connected> FakeCloud::connect(const std::string& id, base::Seconds timeout,
                                     std::stop_token stop) {
  using Outcome = Result<Connected>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>(
      {Operation::kConnect, id, [this, id, timeout] { return sandboxes_.connect(id, timeout); },
       [this, id](const Fault& fault) -> std::optional<Outcome> {
         if (fault.kind != Fault::Kind::kKept) return falsely_not_found<Outcome>(id, fault);
         return Outcome(Connected{sandboxes_.truth_of(id).value_or(Handle{.id = id}), true});
       }});
}

Result<Done> FakeCloud::extend(const std::string& id, base::Seconds timeout, std::stop_token stop) {
  using Outcome = Result<Done>;
  if (stop.stop_requested()) return cancelled();
  return call<Outcome>(
      {Operation::kExtend, id, [this, id, timeout] { return sandboxes_.extend(id, timeout); },
       [id](const Fault& fault) { return falsely_not_found<Outcome>(id, fault); }});
}

void FakeCloud::start_extend(const std::string& id, base::Seconds timeout,
                             std::function<void(Result<Done>)> done) {
  Result<Done> outcome = extend(id, timeout, {});
  std::lock_guard lock(mutex_);
  callbacks_.push_back([outcome = std::move(outcome), done = std::move(done)] { done(outcome); });
  callbacks_waiting_.notify_one();
}

void FakeCloud::start_refresh(const std::string& id, base::Seconds timeout,
                              std::function<void(Result<Done>)> done) {
  {
    std::lock_guard lock(mutex_);
    ++refreshed_;
  }
  start_extend(id, timeout, std::move(done));
}

std::size_t FakeCloud::refreshed() const {
  std::lock_guard lock(mutex_);
  return refreshed_;
}

}  // namespace e2b
