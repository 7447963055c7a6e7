#include "libs/manifests/file_store.h"

#include <algorithm>

#include "libs/api/annotations.h"
#include "libs/base/crypto.h"
#include "libs/base/folder.h"
#include "libs/base/json.h"
#include "libs/base/log.h"
#include "libs/manifests/releases.h"
#include "libs/manifests/rules.h"
#include "libs/manifests/scanner.h"
#include "libs/manifests/state_folder.h"
#include "libs/manifests/watcher.h"
#include "libs/manifests/ways_in.h"

namespace manifests {

using api::Expected;
using api::Key;
using api::Sandbox;
using api::SandboxProvider;
using base::Done;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr base::Milliseconds kLookEvery{5000};  // Also where no change is announced.
constexpr std::size_t kFleetKeyBytes = 32;
constexpr base::Seconds kRequestLeft{3'600};  // None takes so long to write.

Result<Done> check(const api::Metadata& metadata, const Expected& expected) {
  if (metadata.uid != expected.uid)
    return base::error(ErrorCode::kConflict, api::to_text(metadata.key), " is now ", metadata.uid,
                       ", not ", expected.uid);
  if (!expected.resource_version.empty() && metadata.resource_version != expected.resource_version)
    return base::error(ErrorCode::kConflict, api::to_text(metadata.key), " changed since version ",
                       expected.resource_version);
  return Done{};
}

Result<Done> check_identity(const Sandbox& before, const api::SandboxStatus& status) {
  const auto shape = [&](const api::SandboxStatus& each) {
    return Json{{"metadata", {{"name", before.metadata.key.name}}}, {"status", api::to_json(each)}};
  };
  const Json old = shape(before.status);
  const auto violations = check_rules(Kind::kSandbox, shape(status), &old);
  if (violations.empty()) return Done{};
  return base::error(ErrorCode::kInvalid, api::to_text(before.metadata.key), ": ",
                     violations[0].rule);
}

}  // namespace

struct FileStore::State {
  State(const FileStoreOptions& given, const base::Clock& with)
      : options(given),
        clock(with),
        disk([this](const auto& path, Disk::Step step) { return may_write(path, step); }) {}

  const FileStoreOptions options;
  const base::Clock& clock;
  StateFolder folder{options.state};
  const Disk disk;
  const Layout layout{options.state};
  FolderGuard guard{options, layout, disk};
  Objects objects{layout, disk, options.journal};
  Secrets secrets{layout.secrets(), disk};
  Releases releases{layout.releases(), disk};
  const WaysIn ways_in{layout.ways_in(), disk};
  std::unique_ptr<EventLog> events = {};
  std::unique_ptr<Scanner> scanner = {};
  std::function<void(const Key&)> sandbox_changed = {};
  std::function<void(const std::string&)> provider_changed = {};
  std::mutex key_mutex = {};
  mutable std::mutex trouble_mutex = {};
  std::string scan_trouble = {};          // Why the last scan could not record what it saw.
  std::unique_ptr<Watcher> watcher = {};  // Last, so that it stops first.

  Result<Done> open();
  Result<Done> may_write(const std::filesystem::path& path, Disk::Step step) const;
  void sweep() const;
  Result<Done> scan();
  void changed(const Id& id);
  std::vector<std::shared_ptr<const Sandbox>> sandboxes(
      const std::function<bool(const Sandbox&)>& wanted) const;
  // One Sandbox changed by `edit`, which says why when it must not be.
  Result<Sandbox> edit(const Key& key, Durability durability,
                       const std::function<Result<Done>(Sandbox&)>& edit,
                       Objects::News news = Objects::News::kKnown);
};

Result<Done> FileStore::State::open() {
  CHECK_OK(check_apart(options.manifests, options.state));
  CHECK_OK(disk.make_folders(options.state));
  CHECK_OK(folder.lock());
  CHECK_OK(disk.make_folders(layout.results()));
  sweep();
  CHECK_OK(guard.open());
  objects.before_gone([this](const Record& record) -> Result<Done> {
    if (record.sandbox) CHECK_OK(ways_in.remove(record.sandbox->metadata.uid));
    return guard.forget(record.id);
  });
  CHECK_OK(objects.load());
  CHECK_OK(secrets.load());
  events = std::make_unique<EventLog>(layout.events(), disk, clock);
  scanner = std::make_unique<Scanner>(
      Scanner::Parts{options, layout, clock, disk, guard, objects, secrets, *events});
  CHECK_OK(scanner->load_brake());
  CHECK_OK(guard.reconcile(births_of(objects.all())));
  objects.on_change([this](const Id& id) { changed(id); });
  scanner->on_secret_change([this] {
    for (const auto& [id, record] : objects.all())
      if (record->provider) changed(id);
  });
  return Done{};
}

Result<Done> FileStore::State::may_write(const std::filesystem::path& path, Disk::Step step) const {
  if (auto lost = folder.loss()) return *std::move(lost);
  return options.before_step ? options.before_step(path, step) : Done{};
}

// What a process that died left half written.
void FileStore::State::sweep() const {
  std::size_t swept = disk.sweep(layout.requests(), kRequestLeft);  // Others write there, too.
  for (const auto& folder : {options.state, layout.results(), layout.releases(), layout.ways_in()})
    swept += disk.sweep(folder);
  for (const Kind kind : {Kind::kProvider, Kind::kSandbox}) {
    swept += disk.sweep(layout.records(kind));
    for (const auto& folder : base::entries_of(layout.records(kind)))
      if (!folder.has_extension()) swept += disk.sweep(folder);
  }
  if (swept > 0)
    base::log::info("removed what an earlier process left half written", {{"files", swept}});
}

std::vector<std::shared_ptr<const Sandbox>> FileStore::State::sandboxes(
    const std::function<bool(const Sandbox&)>& wanted) const {
  std::vector<std::shared_ptr<const Sandbox>> found;
  for (const auto& [id, record] : objects.all())
    if (record->sandbox && wanted(*record->sandbox)) found.push_back(record->sandbox);
  return found;
}

void FileStore::State::changed(const Id& id) {
  if (id.kind == Kind::kSandbox && sandbox_changed) sandbox_changed(id.key);
  if (id.kind == Kind::kProvider && provider_changed) provider_changed(id.key.name);
  // What is gone may have a document again, which is then made anew.
  if (watcher && !objects.find(id)) watcher->wake();
}

Result<Sandbox> FileStore::State::edit(const Key& key, Durability durability,
                                       const std::function<Result<Done>(Sandbox&)>& edit,
                                       Objects::News news) {
  const Id id{Kind::kSandbox, key};
  TRY(const auto record, objects.change(
                             id,
                             [&](const Record* current) -> Result<std::optional<Record>> {
                               if (!current || !current->sandbox)
                                 return base::error(ErrorCode::kNotFound, "there is no ",
                                                    to_text(id));
                               Sandbox changed = *current->sandbox;
                               CHECK_OK(edit(changed));
                               if (changed == *current->sandbox) return std::optional<Record>();
                               Record next = *current;
                               next.sandbox = std::make_shared<const Sandbox>(std::move(changed));
                               return std::optional(std::move(next));
                             },
                             durability, news));
  return *record.sandbox;
}

FileStore::FileStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileStore::~FileStore() = default;

Result<std::unique_ptr<FileStore>> FileStore::open(const FileStoreOptions& options,
                                                   const base::Clock& clock) {
  auto state = std::make_unique<State>(options, clock);
  CHECK_OK(state->open());
  std::unique_ptr<FileStore> store(new FileStore(std::move(state)));
  if (const auto notice = store->notice(); !notice.empty()) base::log::warn(notice);
  return store;
}

Result<Done> FileStore::State::scan() {
  auto lost = folder.loss();
  auto scanned = lost ? *std::move(lost) : scanner->scan();
  std::lock_guard lock(trouble_mutex);
  scan_trouble = scanned ? "" : scanned.error().message;
  return scanned;
}

Result<Done> FileStore::scan_once() {
  CHECK_OK(state_->scan());
  return state_->objects.settle();
}

void FileStore::start() {
  State& state = *state_;
  state.objects.start();
  state.watcher = std::make_unique<Watcher>(
      std::vector{state.options.manifests, state.layout.requests()}, [&state] {
        if (const auto scanned = state.scan(); !scanned)
          base::log::error("the manifests cannot be taken", {{"error", scanned.error()}});
        const auto due = state.scanner->next_look();
        if (!due) return kLookEvery;
        return std::min(kLookEvery, *due - state.clock.now());
      });
  state.watcher->start();  // Once it has its place: its thread rings its own bell.
}

Result<Done> FileStore::close() {
  if (state_->watcher) state_->watcher->stop();
  return state_->objects.close();
}

std::vector<yaml::Problem> FileStore::problems() const { return state_->scanner->problems(); }
std::optional<Brake> FileStore::brake() const { return state_->scanner->brake(); }
std::string FileStore::notice() const { return state_->guard.notice(); }
std::string FileStore::trouble() const {
  if (const auto lost = state_->folder.loss()) return lost->message;
  {
    std::lock_guard lock(state_->trouble_mutex);
    if (!state_->scan_trouble.empty()) return state_->scan_trouble;
  }
  return state_->objects.trouble();
}

std::shared_ptr<const Sandbox> FileStore::find_sandbox(const Key& key) const {
  const auto record = state_->objects.find({Kind::kSandbox, key});
  return record ? record->sandbox : nullptr;
}

std::vector<std::shared_ptr<const Sandbox>> FileStore::sandboxes() const {
  return state_->sandboxes([](const Sandbox&) { return true; });
}

std::vector<std::shared_ptr<const Sandbox>> FileStore::sandboxes_of(
    const std::string& provider) const {
  return state_->sandboxes([&](const Sandbox& each) { return each.spec.provider == provider; });
}

std::shared_ptr<const Sandbox> FileStore::find_by_uid(const std::string& uid) const {
  const auto found =
      state_->sandboxes([&](const Sandbox& each) { return each.metadata.uid == uid; });
  return found.empty() ? nullptr : found.front();
}

std::shared_ptr<const SandboxProvider> FileStore::find_provider(const std::string& name) const {
  const auto record = state_->objects.find({Kind::kProvider, {"", name}});
  return record ? record->provider : nullptr;
}

std::vector<std::shared_ptr<const SandboxProvider>> FileStore::providers() const {
  std::vector<std::shared_ptr<const SandboxProvider>> found;
  for (const auto& [id, record] : state_->objects.all())
    if (record->provider) found.push_back(record->provider);
  return found;
}

Result<std::optional<Sandbox>> FileStore::get_sandbox(const Key& key) {
  const auto found = find_sandbox(key);
  return found ? std::optional(*found) : std::nullopt;
}

Result<std::string> FileStore::get_secret(const Key& secret, const std::string& key) {
  return state_->secrets.find(secret, key);
}

Result<Sandbox> FileStore::update_metadata(const Key& key, const Expected& expected,
                                           const std::map<std::string, std::string>& annotations,
                                           const std::vector<std::string>& finalizers) {
  TRY(auto edited, state_->edit(key, Durability::kNow, [&](Sandbox& sandbox) -> Result<Done> {
    CHECK_OK(check(sandbox.metadata, expected));
    sandbox.metadata.annotations = annotations;
    sandbox.metadata.finalizers = finalizers;
    return Done{};
  }));
  // What an intent lets be made carries this UID. The scan has begun to sync it long since.
  CHECK_OK(state_->guard.sync_births());
  return edited;
}

Result<Sandbox> FileStore::update_status(const Key& key, const Expected& expected,
                                         const api::SandboxStatus& status, Durability durability) {
  return state_->edit(key, durability, [&](Sandbox& sandbox) -> Result<Done> {
    CHECK_OK(check(sandbox.metadata, expected));
    CHECK_OK(check_identity(sandbox, status));
    sandbox.status = status;
    return Done{};
  });
}

Result<Sandbox> FileStore::bind(const Key& key, const std::string& uid, const api::Attempt& attempt,
                                const api::SandboxStatus& status) {
  return state_->edit(key, Durability::kSoon, [&](Sandbox& sandbox) -> Result<Done> {
    CHECK_OK(check(sandbox.metadata, {uid}));
    if (api::attempt_of(sandbox.metadata) != attempt)
      return base::error(ErrorCode::kConflict, api::to_text(key), " has another attempt on record");
    if (!sandbox.status.sandbox_id.empty() && sandbox.status.epoch >= status.epoch)
      return base::error(ErrorCode::kConflict, api::to_text(key), " is bound to ",
                         sandbox.status.sandbox_id, " already");
    sandbox.status = status;
    return Done{};
  });
}

Result<SandboxProvider> FileStore::update_provider_status(const std::string& name,
                                                          const Expected& expected,
                                                          const api::ProviderStatus& status) {
  const Id id{Kind::kProvider, {"", name}};
  TRY(const auto record,
      state_->objects.change(
          id,
          [&](const Record* current) -> Result<std::optional<Record>> {
            if (!current || !current->provider)
              return base::error(ErrorCode::kNotFound, "there is no ", to_text(id));
            CHECK_OK(check(current->provider->metadata, expected));
            if (current->provider->status == status) return std::optional<Record>();
            SandboxProvider changed = *current->provider;
            changed.status = status;
            Record next = *current;
            next.provider = std::make_shared<const SandboxProvider>(std::move(changed));
            return std::optional(std::move(next));
          },
          Durability::kNow, Objects::News::kKnown));
  return *record.provider;
}

// The document stays where it is, and is passed over until it changes.
// A provider stays by itself while Sandboxes refer to it.
Result<Done> FileStore::hold_provider(const std::string&, const std::string&, bool) {
  return Done{};
}

Result<Done> FileStore::delete_sandbox(const Key& key, const std::string& uid) {
  const Id id{Kind::kSandbox, key};
  CHECK_OK(state_->objects.change(id, [&](const Record* current) -> Result<std::optional<Record>> {
    if (!current || !current->sandbox)
      return base::error(ErrorCode::kNotFound, "there is no ", to_text(id));
    CHECK_OK(check(current->sandbox->metadata, {uid}));
    if (current->deleting()) return std::optional<Record>();
    Sandbox changed = *current->sandbox;
    changed.metadata.deleted = state_->clock.wall();
    Record next = *current;
    next.sandbox = std::make_shared<const Sandbox>(std::move(changed));
    next.passed_over = true;
    return std::optional(std::move(next));
  }));
  return Done{};
}

Result<Done> FileStore::request_wake(const Key& key, const Expected& expected,
                                     const std::string& value) {
  CHECK_OK(state_->edit(
      key, Durability::kSoon,
      [&](Sandbox& sandbox) -> Result<Done> {
        CHECK_OK(check(sandbox.metadata, expected));
        sandbox.metadata.annotations[std::string(api::kWakeAnnotation)] = value;
        return Done{};
      },
      Objects::News::kTold));
  return Done{};
}

void FileStore::record_event(const Sandbox& regarding, const api::Event& event) {
  state_->events->record(regarding.metadata.key, regarding.metadata.uid, event);
}

Result<Done> FileStore::add_release(const Release& release) {
  return state_->releases.add(release);
}

Result<std::vector<FileStore::Release>> FileStore::releases(const std::string& provider) {
  auto kept = state_->releases.of(provider);
  if (auto lost = state_->folder.loss()) return *std::move(lost);
  return kept;
}

Result<Done> FileStore::remove_release(const std::string& provider, const std::string& sandbox_id) {
  return state_->releases.remove(provider, sandbox_id);
}

// In the object's turn, so that none is kept for one that has just gone.
Result<Done> FileStore::keep_way_in(const Key& key, const std::string& uid, const WayIn& way) {
  CHECK_OK(state_->edit(key, Durability::kSoon, [&](Sandbox& sandbox) -> Result<Done> {
    CHECK_OK(check(sandbox.metadata, {uid}));
    return state_->ways_in.keep(uid, way);
  }));
  return Done{};
}

Result<std::optional<FileStore::WayIn>> FileStore::kept_way_in(const std::string& uid) {
  auto kept = state_->ways_in.of(uid);
  if (auto lost = state_->folder.loss()) return *std::move(lost);
  return kept;
}

void FileStore::on_sandbox_change(std::function<void(const Key&)> changed) {
  state_->sandbox_changed = std::move(changed);
}

void FileStore::on_provider_change(std::function<void(const std::string& name)> changed) {
  state_->provider_changed = std::move(changed);
}

std::string FileStore::fleet_id() const { return state_->guard.fleet_id(); }

Result<std::string> FileStore::fleet_key() {
  std::lock_guard lock(state_->key_mutex);
  const auto path = state_->layout.fleet_key();
  const auto kept = base::read_file(path);
  if (kept && kept->size() == kFleetKeyBytes) return *kept;
  if (kept)
    return base::error(ErrorCode::kInvalid, path.string(), " does not hold ",
                       std::to_string(kFleetKeyBytes), " bytes; restore it from a copy");
  if (kept.error().code != ErrorCode::kNotFound) return kept.error();
  const std::string made = base::random_bytes(kFleetKeyBytes);
  CHECK_OK(state_->disk.write(path, made, 0600));
  return made;
}

}  // namespace manifests
