#include "libs/e2b/testing/fake_sandboxes.h"

#include <algorithm>
#include <cstdio>

namespace e2b {
namespace {

using base::Done;
using base::error;
using base::ErrorCode;
using base::Moment;
using base::Result;

base::Error not_found(const std::string& id) {
  return error(ErrorCode::kNotFound, "404: no sandbox ", id);
}
base::Error too_many() { return error(ErrorCode::kRateLimited, "429: too many sandboxes"); }
base::Error bad_timeout() { return error(ErrorCode::kInvalid, "400: bad timeout"); }

bool matches(const SandboxInfo& info, const Filter& filter) {
  return std::ranges::all_of(filter.metadata, [&](const auto& pair) {
    const auto found = info.metadata.find(pair.first);
    return found != info.metadata.end() && found->second == pair.second;
  });
}

}  // namespace

void FakeSandboxes::set_list_lag(base::Milliseconds appear, base::Milliseconds disappear) {
  appear_ = appear;
  disappear_ = disappear;
}

// --- Time.

void FakeSandboxes::add_late(base::Milliseconds late, std::function<void()> effect) {
  late_.push_back({moment_ + late, std::move(effect)});
}

void FakeSandboxes::catch_up() {
  const Moment present = std::max(moment_, clock_.now());
  for (;;) {
    const auto late = std::ranges::min_element(late_, {}, &Late::at);
    const Moment late_at = late == late_.end() ? Moment::max() : late->at;
    if (std::min(late_at, next_expiry_) > present) break;
    if (late_at <= next_expiry_) {
      moment_ = late_at;
      const std::function<void()> effect = std::move(late->effect);
      late_.erase(late);
      effect();
    } else {
      moment_ = next_expiry_;
      expire_due();
    }
  }
  moment_ = present;
}

// A kill by timeout leaves an older snapshot behind, as the real service does.
void FakeSandboxes::expire_due() {
  next_expiry_ = Moment::max();
  for (auto& [id, sandbox] : sandboxes_) {
    if (!sandbox.alive || sandbox.info.state != State::kRunning) continue;
    if (sandbox.lease_end > moment_)
      next_expiry_ = std::min(next_expiry_, sandbox.lease_end);
    else if (sandbox.wanted.auto_pause)
      save(sandbox);
    else
      roll_back(sandbox);
  }
}

void FakeSandboxes::set_lease(Sandbox& sandbox, base::Seconds timeout) {
  sandbox.lease_end = std::max(sandbox.lease_end, moment_ + timeout);
  if (longest_run_)
    sandbox.lease_end = std::min(sandbox.lease_end, sandbox.run_start + *longest_run_);
  next_expiry_ = std::min(next_expiry_, sandbox.lease_end);
}

// --- What becomes of one.

FakeSandboxes::Sandbox& FakeSandboxes::add(const NewSandbox& wanted) {
  char id[32];
  std::snprintf(id, sizeof id, "i%020zu", sandboxes_.size() + 1);
  Sandbox& sandbox = sandboxes_[id];
  sandbox.info = {.id = id,
                  .template_id = wanted.template_id,
                  .metadata = wanted.metadata,
                  .envd_version = "0.6.13"};
  sandbox.wanted = wanted;
  sandbox.since = sandbox.run_start = moment_;
  set_lease(sandbox, wanted.timeout);
  become(sandbox, Change::kCreated);
  return sandbox;
}

void FakeSandboxes::save(Sandbox& sandbox) {
  sandbox.info.state = State::kPaused;
  sandbox.saved = moment_;
  become(sandbox, Change::kPaused);
}

void FakeSandboxes::roll_back(Sandbox& sandbox) {
  if (!sandbox.saved) return drop(sandbox);
  sandbox.info.state = State::kPaused;
  become(sandbox, Change::kRolledBack);
}

void FakeSandboxes::drop(Sandbox& sandbox) {
  sandbox.alive = false;
  sandbox.gone = moment_;
  become(sandbox, Change::kKilled);
}

void FakeSandboxes::lose_run(const std::string& id) {
  Sandbox* sandbox = find_alive(id);
  if (sandbox && sandbox->info.state == State::kRunning) roll_back(*sandbox);
}

std::string FakeSandboxes::plant(const NewSandbox& wanted) { return add(wanted).info.id; }

// --- Looks.

FakeSandboxes::Sandbox* FakeSandboxes::find_alive(const std::string& id) {
  const auto found = sandboxes_.find(id);
  return found != sandboxes_.end() && found->second.alive ? &found->second : nullptr;
}

SandboxInfo FakeSandboxes::look(const Sandbox& sandbox) const {
  SandboxInfo info = sandbox.info;
  info.started_at = wall_at(sandbox.run_start);
  info.end_at = wall_at(info.state == State::kRunning ? sandbox.lease_end : *sandbox.saved);
  if (info.state == State::kPaused) info.pause_mode = "full";
  return info;
}

Handle FakeSandboxes::handle_of(const Sandbox& sandbox) const {
  const std::string run = sandbox.info.id + "-" + std::to_string(sandbox.run);
  return {.id = sandbox.info.id,
          .envd_version = sandbox.info.envd_version,
          .envd_access_token = "envd-token-" + run,
          .traffic_access_token = "traffic-token-" + run};
}

std::vector<SandboxInfo> FakeSandboxes::live() const {
  std::vector<SandboxInfo> all;
  for (const auto& [id, sandbox] : sandboxes_)
    if (sandbox.alive) all.push_back(look(sandbox));
  return all;
}

std::optional<Handle> FakeSandboxes::truth_of(const std::string& id) {
  const Sandbox* sandbox = find_alive(id);
  return sandbox ? std::optional(handle_of(*sandbox)) : std::nullopt;
}

std::optional<NewSandbox> FakeSandboxes::request_of(const std::string& id) const {
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? std::nullopt : std::optional(found->second.wanted);
}

std::vector<FakeSandboxes::Overlap> FakeSandboxes::overlaps(base::Milliseconds tolerated,
                                                            const std::string& key) const {
  std::map<std::string, std::vector<const Sandbox*>> by_value;
  for (const auto& [id, sandbox] : sandboxes_) {
    const auto found = sandbox.info.metadata.find(key);
    if (found != sandbox.info.metadata.end()) by_value[found->second].push_back(&sandbox);
  }
  const auto end_of = [](const Sandbox& sandbox) { return sandbox.gone.value_or(Moment::max()); };
  std::vector<Overlap> overlaps;
  for (const auto& [value, all] : by_value)
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = i + 1; k < all.size(); ++k) {
        const Moment from = std::max(all[i]->since, all[k]->since);
        const Moment until = std::min(end_of(*all[i]), end_of(*all[k]));
        const bool lasts = until == Moment::max();
        if (until <= from || (!lasts && std::min(until, moment_) - from <= tolerated)) continue;
        overlaps.push_back({value, all[i]->info.id, all[k]->info.id, from,
                            lasts ? std::nullopt : std::optional(until)});
      }
  return overlaps;
}

// --- The provider's calls.

bool FakeSandboxes::is_bad_timeout(base::Seconds timeout) const {
  return timeout < base::Seconds(1) || (longest_run_ && timeout > *longest_run_);
}

bool FakeSandboxes::is_full() const {
  const auto running = std::ranges::count_if(sandboxes_, [](const auto& entry) {
    return entry.second.alive && entry.second.info.state == State::kRunning;
  });
  return quota_ && static_cast<std::size_t>(running) >= *quota_;
}

std::optional<CreateFailure> FakeSandboxes::objection_to(const NewSandbox& wanted) const {
  using Kind = CreateFailure::Kind;
  if (refused_templates_.contains(wanted.template_id))
    return CreateFailure{
        error(ErrorCode::kNotFound, "404: template '", wanted.template_id, "' not found"),
        Kind::kRefused};
  if (is_bad_timeout(wanted.timeout)) return CreateFailure{bad_timeout(), Kind::kRefused};
  if (is_full()) return CreateFailure{too_many(), Kind::kQuota};
  return std::nullopt;
}

Result<Handle, CreateFailure> FakeSandboxes::create(const NewSandbox& wanted) {
  if (auto objection = objection_to(wanted)) return *objection;
  return handle_of(add(wanted));
}

Told<std::optional<SandboxInfo>> FakeSandboxes::get(const std::string& id) {
  const Sandbox* sandbox = find_alive(id);
  return {sandbox ? std::optional(look(*sandbox)) : std::nullopt, wall_at(moment_)};
}

Result<std::optional<Handle>> FakeSandboxes::handle(const std::string& id) {
  const Sandbox* sandbox = find_alive(id);
  if (!sandbox) return not_found(id);
  return tokens_hidden_ ? std::optional<Handle>() : std::optional(handle_of(*sandbox));
}

Told<std::vector<SandboxInfo>> FakeSandboxes::list(const Filter& filter) const {
  Told<std::vector<SandboxInfo>> told{{}, wall_at(moment_)};
  for (const auto& [id, sandbox] : sandboxes_) {
    if (moment_ < sandbox.since + appear_) continue;
    if (!sandbox.alive && moment_ >= *sandbox.gone + disappear_) continue;
    SandboxInfo info = look(sandbox);
    if (matches(info, filter)) told.value.push_back(std::move(info));
  }
  return told;
}

KillAnswer FakeSandboxes::kill(const std::string& id) {
  Sandbox* sandbox = find_alive(id);
  if (!sandbox) return KillAnswer::kNotThere;
  drop(*sandbox);
  return KillAnswer::kKilled;
}

Result<PauseAnswer> FakeSandboxes::pause(const std::string& id) {
  Sandbox* sandbox = find_alive(id);
  if (!sandbox) return not_found(id);
  if (sandbox->info.state == State::kPaused) return PauseAnswer::kAlreadyPaused;
  save(*sandbox);
  return PauseAnswer::kPaused;
}

Result<Connected> FakeSandboxes::connect(const std::string& id, base::Seconds timeout) {
  Sandbox* sandbox = find_alive(id);
  if (!sandbox) return not_found(id);
  if (is_bad_timeout(timeout)) return bad_timeout();
  const bool paused = sandbox->info.state == State::kPaused;
  if (paused) {
    if (is_full()) return too_many();
    sandbox->info.state = State::kRunning;
    sandbox->run_start = sandbox->lease_end = moment_;
    ++sandbox->run;
    become(*sandbox, Change::kResumed);
  }
  set_lease(*sandbox, timeout);
  return Connected{handle_of(*sandbox), paused};
}

Result<Done> FakeSandboxes::extend(const std::string& id, base::Seconds timeout) {
  Sandbox* sandbox = find_alive(id);
  if (!sandbox || sandbox->info.state != State::kRunning) return not_found(id);
  if (timeout < base::Seconds(1)) return bad_timeout();
  set_lease(*sandbox, timeout);
  return Done{};
}

}  // namespace e2b
