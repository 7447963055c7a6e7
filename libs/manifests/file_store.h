#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/api/resource_store.h"
#include "libs/manifests/journal.h"
#include "libs/manifests/state_reader.h"
#include "libs/yaml/problem.h"

namespace manifests {

struct FileStoreOptions {
  std::filesystem::path manifests, state;
  std::string space = "default";  // The namespace of objects that name none.
  std::string fleet_id = {};      // Empty: made on first use and kept.
  // The folder carries another machine's or folder's identity, and that is meant: it was moved
  // here.
  bool claim_moved_manifests = false;
  base::Milliseconds removal_hold{2000};  // How long a removal must hold before it is believed.
  std::string machine_id = {};            // Empty: from /etc/machine-id.
  JournalOptions journal = {};
  // Asked before each step on disk; a failure stands for a disk that refuses it, or for a process
  // that died there.
  Disk::Gate before_step = {};
};

// A folder of manifests and a state folder as one store (docs/design/standalone.md). Safe to use
// from many threads. Without start() nothing runs by itself: scan_once() is one look at the folder.
class FileStore final : public api::ResourceStore {
 public:
  // Locks both folders, and finishes what a crash left half done. kConflict: another controller has
  // a folder; kInvalid: the manifests belong to another installation.
  static base::Result<std::unique_ptr<FileStore>> open(const FileStoreOptions& options,
                                                       const base::Clock& clock);
  ~FileStore() override;  // As if the process died; close() first.

  // Takes requests, reads every manifest, then compares and applies. Fails only when the state
  // folder cannot be written; what is wrong with manifests is in problems().
  base::Result<base::Done> scan_once();
  // Scans whenever a folder changes, and every few seconds; until closed or destroyed.
  void start();
  // The last call: everything is durable, and in files that any version can read.
  base::Result<base::Done> close();

  std::vector<yaml::Problem> problems() const;
  std::optional<Brake> brake() const;
  // What a person should know about how the folders are kept; empty when all is well.
  std::string notice() const;
  // Why nothing new can be recorded, as on a full disk or when the state folder is another than
  // before; empty when the last try worked. What is on record counts all the while.
  std::string trouble() const;

  std::shared_ptr<const api::Sandbox> find_sandbox(const api::Key& key) const override;
  std::shared_ptr<const api::Sandbox> find_by_uid(const std::string& uid) const override;
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes() const override;
  std::vector<std::shared_ptr<const api::Sandbox>> sandboxes_of(
      const std::string& provider) const override;
  std::shared_ptr<const api::SandboxProvider> find_provider(const std::string& name) const override;
  std::vector<std::shared_ptr<const api::SandboxProvider>> providers() const override;
  base::Result<std::optional<api::Sandbox>> get_sandbox(const api::Key& key) override;
  base::Result<std::string> get_secret(const api::Key& secret, const std::string& key) override;
  base::Result<api::Sandbox> update_metadata(const api::Key& key, const api::Expected& expected,
                                             const std::map<std::string, std::string>& annotations,
                                             const std::vector<std::string>& finalizers) override;
  base::Result<api::Sandbox> update_status(const api::Key& key, const api::Expected& expected,
                                           const api::SandboxStatus& status,
                                           Durability durability) override;
  base::Result<api::Sandbox> bind(const api::Key& key, const std::string& uid,
                                  const api::Attempt& attempt,
                                  const api::SandboxStatus& status) override;
  base::Result<api::SandboxProvider> update_provider_status(
      const std::string& name, const api::Expected& expected,
      const api::ProviderStatus& status) override;
  base::Result<base::Done> hold_provider(const std::string& name, const std::string& uid,
                                         bool held) override;
  base::Result<base::Done> delete_sandbox(const api::Key& key, const std::string& uid) override;
  base::Result<base::Done> request_wake(const api::Key& key, const api::Expected& expected,
                                        const std::string& value) override;
  void record_event(const api::Sandbox& regarding, const api::Event& event) override;
  base::Result<base::Done> add_release(const Release& release) override;
  base::Result<std::vector<Release>> releases(const std::string& provider) override;
  base::Result<base::Done> remove_release(const std::string& provider,
                                          const std::string& sandbox_id) override;
  base::Result<base::Done> keep_way_in(const api::Key& key, const std::string& uid,
                                       const WayIn& way) override;
  base::Result<std::optional<WayIn>> kept_way_in(const std::string& uid) override;
  void on_sandbox_change(std::function<void(const api::Key&)> changed) override;
  void on_provider_change(std::function<void(const std::string& name)> changed) override;
  std::string fleet_id() const override;
  base::Result<std::string> fleet_key() override;

 private:
  struct State;
  explicit FileStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace manifests
