#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/resources/backend.h"
#include "cli/resources/cluster_manifest.h"
#include "cli/resources/follower.h"

namespace cli {

inline constexpr char kFieldManager[] = "sandfleet-cli";
inline constexpr int kPagesMax = 2'000;  // Of one list.

// A Kubernetes cluster: reads and writes its objects with the rights of whoever types. While
// somebody waits or watches, what he looks at is watched rather than asked for again and again.
class ClusterBackend : public Backend {
 public:
  // Both outlive it; the client's field manager is kFieldManager. `say` takes what a person who
  // watches should know meanwhile.
  ClusterBackend(kube::Client& client, const base::Clock& clock,
                 std::function<void(const std::string&)> say);

  std::string default_space() override { return client_.config().space; }
  base::Result<std::vector<api::Sandbox>> sandboxes(const Where& where) override;
  base::Result<std::optional<api::Sandbox>> sandbox(const api::Key& key) override;
  base::Result<std::vector<api::SandboxProvider>> providers(const std::string& name) override;
  base::Result<std::vector<api::RecordedEvent>> events(const Where& regarding) override;
  bool await_change(const Query& query, base::Milliseconds most) override;
  base::Result<std::vector<std::string>> warnings() override { return std::vector<std::string>{}; }
  std::string idleness() override { return ""; }
  std::string origin(const api::Key&) override { return ""; }
  base::Result<Asked> set_desired_state(const api::Sandbox& seen, api::DesiredState state) override;
  base::Result<Asked> request_wake(const api::Sandbox& seen) override;
  base::Result<Asked> request_look(const api::Sandbox& seen) override;
  base::Result<Asked> apply(const Manifest& manifest) override;
  base::Result<Asked> remove(const api::Sandbox& seen, const Removal& removal) override;
  base::Result<std::optional<std::string>> refusal(const std::string&) override {
    return std::optional<std::string>();
  }

 private:
  base::Result<Asked> request(const api::Sandbox& seen, std::string_view annotation,
                              const std::string& what);
  base::Result<std::vector<base::Json>> objects(const Query& query);
  base::Result<std::vector<base::Json>> list(const kube::Resource& resource,
                                             const kube::Scope& scope);
  base::Result<std::vector<base::Json>> get(const kube::Resource& resource, const Where& where);
  base::Result<base::Done> check_space(const std::string& space);
  base::Result<base::Json> put(const ClusterManifest& manifest, const ClusterDocument& document,
                               bool force, bool dry_run);
  kube::Answer<base::Json> take_back(const ClusterDocument& document,
                                     const kube::WriteOptions& options);
  base::Result<base::Json> merge_spec(const api::Sandbox& seen, base::Json spec);
  base::Error explained(const kube::Refusal& refusal);
  template <typename Resource>
  std::vector<Resource> read_all(const std::vector<base::Json>& objects,
                                 base::Result<Resource> (*read)(const base::Json&));

  kube::Client& client_;
  const base::Clock& clock_;
  const std::function<void(const std::string&)> say_;
  std::vector<base::Json> last_;  // What the last list gave, until the follower has its own.
  bool told_trouble_ = false;
  std::unique_ptr<Follower> follower_;
};

}  // namespace cli
