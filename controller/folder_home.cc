#include "controller/attach/folder_entrance.h"
#include "controller/home.h"
#include "libs/base/log.h"
#include "libs/manifests/file_store.h"

namespace controller {
namespace {

constexpr char kSecretSpace[] = "default";  // Where a provider's Secret is looked for.

base::Result<SocketDoorSettings> door_settings(const Options& options) {
  SocketDoorSettings settings{.path = options.attach_socket.empty()
                                          ? manifests::attach_socket_in(options.state)
                                          : std::filesystem::path(options.attach_socket)};
  if (options.attach_socket_group.empty()) return settings;
  settings.group = base::find_group(options.attach_socket_group);
  if (settings.group) return settings;
  return base::error(base::ErrorCode::kInvalid, "--attach-socket-group ",
                     options.attach_socket_group, ": there is no such group");
}

class FolderHome final : public Home {
 public:
  FolderHome(std::unique_ptr<manifests::FileStore> store, SocketDoorSettings door,
             const Parts& parts)
      : parts_(parts), door_(std::move(door)), store_(std::move(store)), mandate_(parts.clock) {
    door_.hindrance = [this] { return trouble(); };
    store_->on_sandbox_change([this](const api::Key& key) { parts_.queue.add(key); });
    store_->on_provider_change([this](const std::string& name) { parts_.provider_news.add(name); });
    parts_.registry.before_exposition([this] {
      parts_.registry.gauge("sandfleet_state_unwritable").set(trouble().empty() ? 0 : 1);
    });
  }

  api::ResourceStore& store() override { return *store_; }
  const Mandate& mandate() const override { return mandate_; }
  base::Result<std::string> api_key(const api::SandboxProvider& provider) override {
    return parts_.credentials.api_key(*store_, kSecretSpace, provider);
  }
  std::unique_ptr<Entrance> entrance(const std::string& fleet_key, AttachService::WayTo way_to,
                                     AttachService::WayFailed way_failed) override {
    return std::make_unique<FolderEntrance>(
        FolderEntrance::Parts{*store_, parts_.clock, parts_.registry}, fleet_key, std::move(way_to),
        std::move(way_failed), door_);
  }
  // What is on record is kept alive even where nothing more can be recorded, as on a full disk.
  base::Result<base::Done> start() override {
    const auto scanned = store_->scan_once();
    if (!scanned && scanned.error().code != base::ErrorCode::kUnavailable) return scanned.error();
    if (!scanned)
      base::log::error("the manifests cannot be taken; going on with what is on record",
                       {{"error", scanned.error()}});
    store_->start();
    return base::Done{};
  }
  std::optional<base::Error> end() const override { return std::nullopt; }
  std::string trouble() const override {
    const std::string why = store_->trouble();
    return why.empty() ? "" : "the state folder cannot be written: " + why;
  }
  base::Result<base::Done> close() override { return store_->close(); }

 private:
  const Parts parts_;
  SocketDoorSettings door_;
  const std::unique_ptr<manifests::FileStore> store_;
  const SoleMandate mandate_;
};

}  // namespace

base::Result<std::unique_ptr<Home>> open_folder(const Options& options, const Home::Parts& parts) {
  TRY(auto door, door_settings(options));
  TRY(auto store,
      manifests::FileStore::open({.manifests = options.manifests,
                                  .state = options.state,
                                  .fleet_id = options.fleet_id,
                                  .claim_moved_manifests = options.claim_moved_manifests},
                                 parts.clock));
  return std::unique_ptr<Home>(
      std::make_unique<FolderHome>(std::move(store), std::move(door), parts));
}

base::Result<std::unique_ptr<Home>> open_home(const Options& options, const Home::Parts& parts) {
  return options.has_folder() ? open_folder(options, parts) : open_cluster(options, parts);
}

}  // namespace controller
