#include "libs/manifests/objects.h"

#include <algorithm>

#include "libs/manifests/document.h"

namespace manifests {

using base::Done;
using base::Result;

std::mutex& Objects::turn_of(const Id& id) {
  return turns_[std::hash<std::string>{}(to_text(id)) % kTurns];
}

Result<Done> Objects::load() {
  TRY(auto kept, ledger_.load());
  last_version_ = kept.last_version;
  for (auto& [id, record] : kept.records)
    install(id, std::make_shared<const Record>(std::move(record)));
  // What a crash left between the last finalizer and the last trace.
  for (const auto& [id, record] : all()) {
    if (!record->deleting() || held(*record)) continue;
    std::lock_guard turn(turn_of(id));
    CHECK_OK(finish(*record));
  }
  return Done{};
}

std::shared_ptr<const Record> Objects::find(const Id& id) const {
  std::lock_guard lock(mutex_);
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : found->second;
}

std::map<Id, std::shared_ptr<const Record>> Objects::all() const {
  std::lock_guard lock(mutex_);
  return records_;
}

void Objects::install(const Id& id, std::shared_ptr<const Record> record) {
  std::lock_guard lock(mutex_);
  if (record)
    records_[id] = std::move(record);
  else
    records_.erase(id);
}

void Objects::notify(const Id& id) const {
  if (changed_) changed_(id);
}

// A finalizer holds an object, and a provider is held by every Sandbox that refers to it.
bool Objects::held(const Record& record) const {
  if (!record.metadata()->finalizers.empty()) return true;
  if (!record.provider) return false;
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(records_, [&](const auto& entry) {
    const auto& sandbox = entry.second->sandbox;
    return sandbox && sandbox->spec.provider == record.id.key.name;
  });
}

Result<Record> Objects::change(const Id& id, const Change& wanted, Durability durability,
                               News news) {
  std::optional<Record> changed;
  bool gone = false;
  {
    std::lock_guard turn(turn_of(id));
    const auto current = find(id);
    TRY(auto next, wanted(current.get()));
    if (!next) {
      if (durability == Durability::kNow) CHECK_OK(ledger_.sync(id));
      return current ? *current : Record{id};
    }
    next = with_metadata(*std::move(next), [this](api::Metadata& metadata) {
      metadata.resource_version = std::to_string(++last_version_);
    });
    gone = next->deleting() && !held(*next);
    auto kept = gone ? finish(*std::move(next)) : keep(*std::move(next), durability);
    if (!kept) return kept.error();
    changed = *std::move(kept);
  }
  if (gone || news == News::kTold) notify(id);
  if (gone && id.kind == Kind::kSandbox) CHECK_OK(finish_providers());
  return *std::move(changed);
}

Result<Record> Objects::keep(Record record, Durability durability) {
  CHECK_OK(ledger_.put(record, ++last_version_, durability));
  install(record.id, std::make_shared<const Record>(record));
  return record;
}

// The object goes; where its document is to be passed over, a tombstone takes its place.
Result<Record> Objects::finish(Record record) {
  if (before_gone_) CHECK_OK(before_gone_(record));
  if (record.passed_over) {
    Record tombstone = record;
    tombstone.sandbox.reset();
    tombstone.provider.reset();
    CHECK_OK(keep(std::move(tombstone), Durability::kNow));
    return record;
  }
  CHECK_OK(remove(record.id));
  return record;
}

Result<Done> Objects::remove(const Id& id) {
  CHECK_OK(ledger_.drop(id, ++last_version_));
  install(id, nullptr);
  return Done{};
}

// Providers that only the Sandbox just gone held.
Result<Done> Objects::finish_providers() {
  for (const auto& [id, record] : all()) {
    if (!record->provider || !record->deleting()) continue;
    const auto still = [](const Record* now) -> Result<std::optional<Record>> {
      if (!now || !now->deleting()) return std::optional<Record>();
      return std::optional(*now);
    };
    if (!held(*record)) CHECK_OK(change(id, still));
  }
  return Done{};
}

Result<Done> Objects::drop_tombstone(const Id& id) {
  {
    std::lock_guard turn(turn_of(id));
    const auto current = find(id);
    if (!current || !current->tombstone()) return Done{};
    CHECK_OK(remove(id));
  }
  notify(id);
  return Done{};
}

}  // namespace manifests
