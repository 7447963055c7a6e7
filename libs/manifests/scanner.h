#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libs/manifests/event_log.h"
#include "libs/manifests/folder.h"
#include "libs/manifests/folder_guard.h"
#include "libs/manifests/intake.h"
#include "libs/manifests/objects.h"
#include "libs/manifests/secrets.h"

namespace manifests {

// One look at the folder: read everything, take requests, compare, apply.
class Scanner {
 public:
  struct Parts {
    const FileStoreOptions& options;
    const Layout& layout;
    const base::Clock& clock;
    const Disk& disk;
    FolderGuard& guard;
    Objects& objects;
    Secrets& secrets;
    EventLog& events;
  };
  explicit Scanner(const Parts& parts);

  base::Result<base::Done> load_brake();
  base::Result<base::Done> scan();

  std::vector<yaml::Problem> problems() const;
  std::optional<Brake> brake() const;
  // When a removal that is waited for has held; nothing: no need to look before the folder changes.
  std::optional<base::Moment> next_look() const;
  void on_secret_change(std::function<void()> changed) { secret_changed_ = std::move(changed); }

 private:
  struct Look {
    std::optional<std::string> trouble;
    std::vector<ReadFile> files = {};
  };
  Look look();

  base::Result<bool> take_requests(const Look& look);  // True: the brake was released.
  base::Result<RequestResult> serve(const std::string& id, const Request& request, const Look& look,
                                    bool& released);
  base::Result<RequestResult> serve_delete(const std::string& id, const Request& request);
  // By the annotation that asks the controller for it.
  base::Result<RequestResult> serve_by_mark(const Request& request, std::string_view annotation,
                                            std::string_view what_comes);
  base::Result<RequestResult> serve_recreate(const Request& request);
  base::Result<RequestResult> release_brake(const std::string& id, const Request& request,
                                            const Look& look, bool& released);

  Plan plan_with(const Look& look, bool released);
  base::Result<base::Done> apply(Plan& plan);
  base::Result<base::Done> create(const std::vector<const Declared*>& documents);
  base::Result<base::Done> update(const Declared& document, std::vector<yaml::Problem>& problems);
  base::Result<base::Done> mark_deleted(const Id& id);
  base::Result<base::Done> forget(const Id& id);

  base::Result<base::Done> set_brake(const std::string& reason);
  base::Result<base::Done> publish(std::vector<yaml::Problem> problems);
  void tell(const std::vector<yaml::Problem>& problems);
  std::set<api::Key> referred_secrets() const;
  std::optional<Id> find_target(const Request& request) const;

  Parts parts_;
  FolderReader reader_;
  Intake intake_;
  std::mutex turn_;  // One scan at a time.
  std::map<Id, base::Moment> missing_;
  std::set<Id> released_;
  std::set<std::string> told_;

  mutable std::mutex mutex_;  // Of what others ask for.
  std::vector<yaml::Problem> problems_;
  std::optional<Brake> brake_;
  std::optional<base::Moment> next_look_;
  std::function<void()> secret_changed_;
};

}  // namespace manifests
