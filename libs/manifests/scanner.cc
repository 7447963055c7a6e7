#include "libs/manifests/scanner.h"

#include <algorithm>

#include "libs/api/annotations.h"
#include "libs/api/reasons.h"
#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/time.h"
#include "libs/manifests/document.h"

namespace manifests {

using base::Done;
using base::Json;
using base::Result;

namespace {

using Next = Result<std::optional<Record>>;
const std::optional<Record> kStays = std::nullopt;

RequestResult refused(const std::string& why) { return {false, why}; }
RequestResult done(const std::string& what) { return {true, what}; }

}  // namespace

Scanner::Scanner(const Parts& parts)
    : parts_(parts),
      reader_(parts.options.manifests, parts.options.space),
      intake_(parts.layout, parts.disk) {}

std::vector<yaml::Problem> Scanner::problems() const {
  std::lock_guard lock(mutex_);
  return problems_;
}

std::optional<Brake> Scanner::brake() const {
  std::lock_guard lock(mutex_);
  return brake_;
}

std::optional<base::Moment> Scanner::next_look() const {
  std::lock_guard lock(mutex_);
  return next_look_;
}

Result<Done> Scanner::load_brake() {
  TRY(const auto json, read_json_file(parts_.layout.brake()));
  if (!json) return Done{};
  TRY(auto brake, brake_from_json(*json));
  std::lock_guard lock(mutex_);
  brake_ = std::move(brake);
  return Done{};
}

Result<Done> Scanner::set_brake(const std::string& reason) {
  if (brake()) return Done{};
  const Brake brake{base::random_hex(8), reason, parts_.clock.wall()};
  base::log::warn("nothing is deleted until the brake is released", {{"reason", reason}});
  CHECK_OK(parts_.disk.write(parts_.layout.brake(), base::to_text(to_json(brake)), 0600));
  std::lock_guard lock(mutex_);
  brake_ = brake;
  return Done{};
}

// Everything is read before anything is compared.
Scanner::Look Scanner::look() {
  if (auto trouble = parts_.guard.trouble()) return {std::move(trouble)};
  auto files = reader_.read_all();
  if (!files) return {files.error().message};
  return {std::nullopt, *std::move(files)};
}

Result<Done> Scanner::scan() {
  std::lock_guard turn(turn_);
  Look seen = look();
  TRY(const bool released, take_requests(seen));
  if (released) seen = look();
  if (seen.trouble) {
    missing_.clear();  // A removal has to hold while it can be seen.
    CHECK_OK(set_brake(*seen.trouble));
    return publish(
        {{parts_.options.manifests.string(), 0, 0, "",
          "the folder cannot be used: " + *seen.trouble, "put it right, then release the brake"}});
  }
  Plan plan = plan_with(seen, released);
  TRY(const bool secrets_changed,
      parts_.secrets.take(seen.files, [this] { return referred_secrets(); }, plan.problems));
  if (!plan.brake_reason.empty()) CHECK_OK(set_brake(plan.brake_reason));
  CHECK_OK(apply(plan));
  if (secrets_changed && secret_changed_) secret_changed_();
  return publish(std::move(plan.problems));
}

Plan Scanner::plan_with(const Look& seen, bool released) {
  Comparison comparison{parts_.objects.all(),
                        seen.files,
                        missing_,
                        released_,
                        brake().has_value(),
                        parts_.clock.now(),
                        parts_.options.removal_hold};
  Plan plan = compare(comparison);
  if (released) {
    for (const auto& [id, since] : plan.missing) comparison.released.insert(id);
    plan = compare(comparison);
  }
  missing_ = plan.missing;
  released_ = std::move(comparison.released);
  std::erase_if(released_, [this](const Id& id) { return !missing_.contains(id); });
  std::lock_guard lock(mutex_);
  next_look_ = plan.next_look;
  return plan;
}

Result<Done> Scanner::apply(Plan& plan) {
  CHECK_OK(create(plan.creations));
  for (const Declared* document : plan.updates) CHECK_OK(update(*document, plan.problems));
  for (const Id& id : plan.removals) CHECK_OK(mark_deleted(id));
  for (const Id& id : plan.forgotten) CHECK_OK(forget(id));
  return Done{};
}

// UIDs first, all of them in one write. Nothing waits for them or for the new records: what is made
// elsewhere under a UID waits for both, and the sync here runs beside that.
Result<Done> Scanner::create(const std::vector<const Declared*>& documents) {
  if (documents.empty()) return parts_.guard.sync_births();  // Of a time when that failed.
  std::vector<Id> ids;
  for (const Declared* document : documents) ids.push_back({document->kind, document->key});
  TRY(const auto births, parts_.guard.give_birth(ids, parts_.clock.wall()));
  for (const Declared* document : documents) {
    const Id id{document->kind, document->key};
    CHECK_OK(parts_.objects.change(
        id,
        [&](const Record* current) -> Next {
          if (current && !current->tombstone()) return kStays;
          TRY(auto record, newborn(*document, births.at(id)));
          if (!parts_.guard.recovered(id)) return std::optional(std::move(record));
          return std::optional(with_metadata(std::move(record), [](api::Metadata& metadata) {
            metadata.annotations[std::string(api::kRecoveredAnnotation)] = "true";
          }));
        },
        Objects::Durability::kSoon));
  }
  return parts_.guard.sync_births();
}

Result<Done> Scanner::update(const Declared& document, std::vector<yaml::Problem>& problems) {
  const Id id{document.kind, document.key};
  // Only read for the line and column of what cannot be changed.
  const auto text = base::read_file(parts_.options.manifests / document.file);
  const auto changed = parts_.objects.change(id, [&](const Record* current) -> Next {
    if (!current || current->tombstone()) return kStays;
    const bool same = current->digest == document.digest;
    if (current->deleting()) {
      if (same || !current->passed_over) return kStays;
      Record record = *current;
      record.passed_over = false;  // The new document is made once the old object is gone.
      return std::optional(std::move(record));
    }
    const Json before =
        current->sandbox ? api::to_json(*current->sandbox) : api::to_json(*current->provider);
    const auto violations = check_edit(document, before, text ? *text : "");
    problems.insert(problems.end(), violations.begin(), violations.end());
    if (!violations.empty()) return kStays;
    TRY(auto record, with_document(*current, document));
    return std::optional(std::move(record));
  });
  if (!changed) return changed.error();
  return Done{};
}

Result<Done> Scanner::mark_deleted(const Id& id) {
  const auto now = parts_.clock.wall();
  const auto changed = parts_.objects.change(id, [&](const Record* current) -> Next {
    if (!current || current->tombstone() || current->deleting()) return kStays;
    Record record =
        with_metadata(*current, [&](api::Metadata& metadata) { metadata.deleted = now; });
    record.passed_over = false;
    return std::optional(std::move(record));
  });
  if (!changed) return changed.error();
  return Done{};
}

Result<Done> Scanner::forget(const Id& id) {
  const auto record = parts_.objects.find(id);
  if (!record) return Done{};
  if (record->tombstone()) return parts_.objects.drop_tombstone(id);
  const auto changed = parts_.objects.change(id, [](const Record* current) -> Next {
    if (!current || !current->passed_over) return kStays;
    Record next = *current;
    next.passed_over = false;
    return std::optional(std::move(next));
  });
  if (!changed) return changed.error();
  return Done{};
}

Result<Done> Scanner::publish(std::vector<yaml::Problem> problems) {
  tell(problems);
  if (problems == this->problems()) return Done{};
  Json json = Json::array();
  for (const yaml::Problem& problem : problems) json.push_back(to_json(problem));
  CHECK_OK(parts_.disk.write(parts_.layout.problems(), base::to_text(json, 2), 0600));
  std::lock_guard lock(mutex_);
  problems_ = std::move(problems);
  return Done{};
}

// Each problem is told once: in the log, and as an event of the objects whose last good version it
// keeps in force.
void Scanner::tell(const std::vector<yaml::Problem>& problems) {
  std::set<std::string> now;
  for (const yaml::Problem& problem : problems) {
    const std::string text = to_text(problem);
    if (!now.insert(text).second || told_.contains(text)) continue;
    base::log::warn("a manifest is not taken", {{"problem", text}});
    for (const auto& [id, record] : parts_.objects.all())
      if (record->sandbox && record->file == problem.file)
        parts_.events.record(id.key, record->sandbox->metadata.uid,
                             {"Warning", std::string(api::reason::kInvalidManifest), "Read",
                              text + " (its last good version stays in force)"});
  }
  told_ = std::move(now);
}

std::set<api::Key> Scanner::referred_secrets() const {
  std::set<api::Key> keys;
  for (const auto& [id, record] : parts_.objects.all()) {
    if (record->provider && record->provider->spec.credentials)
      keys.insert({parts_.options.space, record->provider->spec.credentials->name});
    if (!record->sandbox) continue;
    for (const api::EnvVar& variable : record->sandbox->spec.env)
      if (variable.secret) keys.insert({id.key.space, variable.secret->name});
  }
  return keys;
}

Result<bool> Scanner::take_requests(const Look& seen) {
  bool released = false;
  TRY(auto pending, intake_.pending());
  for (const Intake::Pending& each : pending) {
    if (!each.request) {
      CHECK_OK(intake_.answer(each.id, refused(each.request.error().message)));
      continue;
    }
    TRY(const auto result, serve(each.id, *each.request, seen, released));
    CHECK_OK(parts_.objects.settle());  // Whoever reads the answer finds the records so.
    CHECK_OK(intake_.answer(each.id, result));
  }
  return released;
}

Result<RequestResult> Scanner::serve(const std::string& id, const Request& request,
                                     const Look& seen, bool& released) {
  switch (request.kind) {
    case Request::Kind::kDelete:
      return serve_delete(id, request);
    case Request::Kind::kReconcile:
      return serve_by_mark(request, api::kReconcileAnnotation, "it is looked at now");
    case Request::Kind::kWake:
      return serve_by_mark(request, api::kWakeAnnotation, "it is woken if it idles");
    case Request::Kind::kRecreate:
      return serve_recreate(request);
    case Request::Kind::kReleaseBrake:
      return release_brake(id, request, seen, released);
  }
  return refused("no such request");
}

// A key without a namespace may also name a Sandbox of the default one.
std::optional<Id> Scanner::find_target(const Request& request) const {
  const Id sandbox{
      Kind::kSandbox,
      {request.key.space.empty() ? parts_.options.space : request.key.space, request.key.name}};
  const Id provider{Kind::kProvider, {"", request.key.name}};
  if (request.key.space.empty() && parts_.objects.find(provider)) return provider;
  if (parts_.objects.find(sandbox)) return sandbox;
  return std::nullopt;
}

Result<RequestResult> Scanner::serve_delete(const std::string& id, const Request& request) {
  const auto target = find_target(request);
  const auto record = target ? parts_.objects.find(*target) : nullptr;
  if (!record || record->tombstone())
    return request.uid.empty() ? refused("there is no such object") : done("already gone");
  Request pinned = request;
  if (pinned.uid.empty()) {
    pinned.uid = record->metadata()->uid;
    CHECK_OK(intake_.pin(id, pinned));
  }
  bool other = false;
  const auto now = parts_.clock.wall();
  CHECK_OK(parts_.objects.change(*target, [&](const Record* current) -> Next {
    other = !current || current->tombstone() || current->metadata()->uid != pinned.uid;
    if (other) return kStays;
    Record next = with_metadata(*current, [&](api::Metadata& metadata) {
      if (!metadata.deleted) metadata.deleted = now;
    });
    next.passed_over = next.passed_over || !current->deleting();
    if (pinned.policy && next.sandbox && next.sandbox->spec.deletion_policy != *pinned.policy) {
      auto sandbox = *next.sandbox;
      sandbox.spec.deletion_policy = *pinned.policy;
      ++sandbox.metadata.generation;
      next.sandbox = std::make_shared<const api::Sandbox>(std::move(sandbox));
    }
    return std::optional(std::move(next));
  }));
  return other ? done("already gone: another object has that name now")
               : done("deletion asked for");
}

Result<RequestResult> Scanner::serve_by_mark(const Request& request, std::string_view annotation,
                                             std::string_view what_comes) {
  const auto target = find_target(request);
  if (!target) return refused("there is no such object");
  bool found = false;
  const std::string now = base::to_rfc3339(parts_.clock.wall());
  CHECK_OK(parts_.objects.change(*target, [&](const Record* current) -> Next {
    found = current && !current->tombstone() &&
            (request.uid.empty() || current->metadata()->uid == request.uid);
    if (!found) return kStays;
    return std::optional(with_metadata(*current, [&](api::Metadata& metadata) {
      metadata.annotations[std::string(annotation)] = now;
    }));
  }));
  return found ? done(std::string(what_comes)) : refused("there is no such object");
}

Result<RequestResult> Scanner::serve_recreate(const Request& request) {
  const auto target = find_target(request);
  const auto record = target ? parts_.objects.find(*target) : nullptr;
  if (!record || !record->passed_over) return done("nothing is passed over");
  CHECK_OK(forget(*target));
  return done("it is made again from its manifest");
}

Result<RequestResult> Scanner::release_brake(const std::string& id, const Request& request,
                                             const Look& seen, bool& released) {
  const auto brake = this->brake();
  if (!brake) return done("the brake is not on");
  if (!request.uid.empty() && request.uid != brake->id)
    return done("already released: the brake is on for another reason now");
  Request pinned = request;
  pinned.uid = brake->id;
  CHECK_OK(intake_.pin(id, pinned));
  if (seen.trouble) {
    const auto accepted = parts_.guard.accept(births_of(parts_.objects.all()));
    if (!accepted)
      return refused("the folder of manifests cannot be used yet: " + accepted.error().message +
                     "; put it right (an empty folder deletes everything), then release again");
  }
  CHECK_OK(parts_.disk.remove(parts_.layout.brake()));
  base::log::info("the brake is released", {{"reason", brake->reason}});
  std::lock_guard lock(mutex_);
  brake_.reset();
  released = true;
  return done("released: " + brake->reason);
}

}  // namespace manifests
