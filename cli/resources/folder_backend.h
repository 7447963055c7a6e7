#pragma once

#include <filesystem>
#include <functional>

#include "cli/resources/backend.h"
#include "libs/manifests/requests.h"
#include "libs/manifests/state_reader.h"

namespace cli {

// Standalone: reads the controller's state folder, edits the manifests that it watches, and leaves
// requests for it.
class FolderBackend final : public Backend {
 public:
  // `sleep` lets that time pass; false: look no more.
  FolderBackend(std::filesystem::path state, std::function<bool(base::Milliseconds)> sleep)
      : state_(state), sleep_(std::move(sleep)), reader_(std::move(state)) {}

  std::string default_space() override { return "default"; }
  base::Result<std::vector<api::Sandbox>> sandboxes(const Where& where) override;
  base::Result<std::optional<api::Sandbox>> sandbox(const api::Key& key) override;
  base::Result<std::vector<api::SandboxProvider>> providers(const std::string& name) override;
  base::Result<std::vector<api::RecordedEvent>> events(const Where& regarding) override;
  bool await_change(const Query& query, base::Milliseconds most) override;
  base::Result<std::vector<std::string>> warnings() override;
  std::string idleness() override;
  std::string origin(const api::Key& key) override;
  base::Result<Asked> set_desired_state(const api::Sandbox& seen, api::DesiredState state) override;
  base::Result<Asked> request_wake(const api::Sandbox& seen) override;
  base::Result<Asked> request_look(const api::Sandbox& seen) override;
  base::Result<Asked> apply(const Manifest& manifest) override;
  base::Result<Asked> remove(const api::Sandbox& seen, const Removal& removal) override;
  base::Result<std::optional<std::string>> refusal(const std::string& request) override;

 private:
  std::string warning_of_space() const;
  base::Result<Asked> request(const api::Sandbox& seen, manifests::Request::Kind kind,
                              const std::string& what);

  std::filesystem::path state_;
  std::function<bool(base::Milliseconds)> sleep_;
  manifests::StateReader reader_;
};

}  // namespace cli
