#include "libs/manifests/ledger.h"

#include <set>
#include <utility>

#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

// Files follow the journal this much later, so that changes that come soon after one another share
// a sync and a file.
constexpr base::Milliseconds kBehind{50};
constexpr base::Milliseconds kTryAgain{1'000};  // After a failure.

std::string line_of(std::int64_t version, const std::string& record) {
  return "{\"version\":" + std::to_string(version) + ",\"record\":" + record + "}";
}

std::string line_of_gone(std::int64_t version, const Id& id) {
  Json json = to_json(id);
  json["version"] = version;
  return base::to_text(json);
}

// What a line says became of an object.
struct Told {
  Id id = {};
  std::int64_t version = 0;
  std::optional<Record> record = {};  // Nothing: it is gone.
};

Result<Told> told_by(const std::string& line) {
  TRY(const Json json, base::parse_json(line));
  Told told{.version = base::integer_at(json, "version").value_or(0)};
  const Json* record = base::object_at(json, "record");
  if (!record) {
    told.id = id_from_json(json);
    return told;
  }
  TRY(told.record, record_from_json(*record));
  told.id = told.record->id;
  return told;
}

std::int64_t version_of(const Record& record) {
  const api::Metadata* metadata = record.metadata();
  return metadata ? base::parse_integer(metadata->resource_version).value_or(0) : 0;
}

}  // namespace

Ledger::Ledger(Layout layout, const Disk& disk, JournalOptions options)
    : layout_(std::move(layout)), disk_(disk), journal_(layout_.journal(), disk, options) {}

Ledger::~Ledger() = default;

Result<Ledger::Kept> Ledger::load() {
  Kept kept;
  std::map<fs::path, base::Error> unreadable;
  for (const Kind kind : {Kind::kProvider, Kind::kSandbox}) {
    auto found = read_record_files(layout_, kind);
    unreadable.merge(found.unreadable);
    for (Record& record : found.records) {
      const Id id = record.id;
      kept.records[id] = std::move(record);
    }
  }
  TRY(const auto lines, journal_.read());
  std::map<Id, Told> last;
  for (const std::string& line : lines) {
    auto told = told_by(line);
    if (!told)
      return base::error(ErrorCode::kInvalid, "a line of the journal in ",
                         layout_.journal().string(), " ", told.error().message);
    kept.last_version = std::max(kept.last_version, told->version);
    const Id id = told->id;
    last[id] = *std::move(told);
  }
  for (auto& [id, told] : last) {
    unreadable.erase(layout_.record(id));
    const auto file = kept.records.find(id);
    // Written by a program that knows no journal.
    if (file != kept.records.end() && version_of(file->second) > told.version) continue;
    waiting_[id].text =
        told.record ? std::make_shared<const std::string>(base::to_text(to_json(*told.record)))
                    : nullptr;
    if (told.record)
      kept.records[id] = *std::move(told.record);
    else
      kept.records.erase(id);
  }
  if (!unreadable.empty()) return unreadable.begin()->second;
  for (const auto& [id, record] : kept.records)
    kept.last_version = std::max(kept.last_version, version_of(record));
  // So that crashes one after another do not pile them up.
  if (journal_.settled() > 1) (void)settle_and_trim();
  return kept;
}

Result<Done> Ledger::put(const Record& record, std::int64_t version, Durability durability) {
  auto text = std::make_shared<const std::string>(base::to_text(to_json(record)));
  const std::string line = line_of(version, *text);
  return change(record.id, line, std::move(text), durability);
}

Result<Done> Ledger::drop(const Id& id, std::int64_t version) {
  return change(id, line_of_gone(version, id), nullptr, Durability::kNow);
}

std::string Ledger::trouble() const {
  std::lock_guard lock(mutex_);
  return not_kept_.empty() ? not_in_files_ : not_kept_;
}

Result<Done> Ledger::change(const Id& id, const std::string& line, Text text,
                            Durability durability) {
  auto changed = try_change(id, line, std::move(text), durability);
  std::lock_guard lock(mutex_);
  not_kept_ = changed ? "" : changed.error().message;
  return changed;
}

// What fails here was not acknowledged: its line, if it is on disk after all, is as a write whose
// answer was lost.
Result<Done> Ledger::try_change(const Id& id, const std::string& line, Text text,
                                Durability durability) {
  auto appended = journal_.append(line);
  // Where the journal is full, whoever wants more of it makes room first.
  if (!appended && settle_and_trim()) appended = journal_.append(line);
  TRY(auto mark, std::move(appended));
  const bool now = durability == Durability::kNow;
  if (now) CHECK_OK(journal_.sync(mark));
  {
    std::lock_guard lock(mutex_);
    if (waiting_.empty()) changed_.notify_one();
    waiting_[id] = {std::move(text), std::move(mark)};
  }
  if (now && !started_) (void)settle_and_trim();  // It is durable already.
  return Done{};
}

Result<Done> Ledger::sync(const Id& id) {
  const auto mark = [&] {
    std::lock_guard lock(mutex_);
    const auto found = waiting_.find(id);
    return found == waiting_.end() ? Journal::Mark{} : found->second.mark;
  }();
  return journal_.sync(mark);
}

Result<Done> Ledger::write(const Id& id, const Text& text, Durable durable) const {
  const fs::path path = layout_.record(id);
  if (!text) return disk_.remove(path, durable);
  CHECK_OK(disk_.make_folders(path.parent_path()));
  return disk_.write(path, *text, 0600, durable);
}

std::map<Id, Ledger::Change> Ledger::waiting() {
  std::lock_guard lock(mutex_);
  return waiting_;
}

Result<Done> Ledger::settle() {
  std::lock_guard turn(settling_);
  return settle_in_turn();
}

Result<Done> Ledger::settle_and_trim() {
  std::lock_guard turn(settling_);
  auto settled = settle_in_turn();
  if (settled) settled = trim();
  if (!settled && !behind_)
    base::log::error("records wait for their files; what they say is in the journal",
                     {{"error", settled.error()}});
  behind_ = !settled;
  std::lock_guard lock(mutex_);
  not_in_files_ = settled ? "" : settled.error().message;
  return settled;
}

Result<Done> Ledger::settle_in_turn() {
  for (const auto& [id, change] : waiting()) {
    // What the journal could not keep, its own file keeps by itself.
    const bool kept = journal_.sync(change.mark).ok();
    CHECK_OK(write(id, change.text, kept ? Durable::kPastProcess : Durable::kPastPowerLoss));
    if (kept)
      loose_[id] = {change.text};
    else
      loose_.erase(id);
    std::lock_guard lock(mutex_);
    if (const auto now = waiting_.find(id); now->second.mark == change.mark) waiting_.erase(now);
  }
  return Done{};
}

// Nobody holds a mark of the files that go: what they tell is in the records' files, or told anew
// by a line that waits, which must be on disk first.
Result<Done> Ledger::trim() {
  const std::size_t files = journal_.settled();
  if (files == 0) return Done{};
  for (const auto& [id, change] : waiting()) CHECK_OK(journal_.sync(change.mark));
  CHECK_OK(sync_files());
  return journal_.drop(files);
}

Result<Done> Ledger::sync_files() {
  std::set<fs::path> folders;
  for (auto& [id, loose] : loose_) {
    const fs::path path = layout_.record(id), root = layout_.records(id.kind).parent_path();
    for (fs::path folder = path.parent_path(); folders.insert(folder).second && folder != root;)
      folder = folder.parent_path();
    if (!loose.text) continue;
    if (!loose.doubtful) loose.doubtful = !disk_.sync(path).ok();
    if (loose.doubtful) CHECK_OK(write(id, loose.text, Durable::kPastPowerLoss));
  }
  for (const fs::path& folder : folders) {
    std::error_code gone;
    if (!fs::exists(folder, gone)) continue;
    if (auto synced = disk_.sync(folder); !synced) {
      for (auto& [id, loose] : loose_) loose.doubtful = true;
      return synced;
    }
  }
  loose_.clear();
  return Done{};
}

void Ledger::start() {
  started_ = true;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Ledger::run(const std::stop_token& stop) {
  bool due = true;  // The first time for what earlier processes left.
  auto pause = kBehind;
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return due || !waiting_.empty(); })) {
    changed_.wait_for(lock, stop, pause, [] { return false; });
    if (stop.stop_requested()) return;
    lock.unlock();
    due = !settle_and_trim().ok();
    pause = due ? kTryAgain : kBehind;
    lock.lock();
  }
}

Result<Done> Ledger::close() {
  thread_ = {};
  std::lock_guard turn(settling_);
  CHECK_OK(settle_in_turn());
  journal_.end_newest();
  return trim();  // Never the file of a change that came meanwhile: it has a mark.
}

}  // namespace manifests
