#pragma once

#include <filesystem>

#include "cli/backend.h"
#include "libs/manifests/state_reader.h"

namespace cli {

// Standalone: reads the controller's state folder, edits the manifests that it watches, and leaves
// requests for it.
class FolderBackend final : public Backend {
 public:
  explicit FolderBackend(std::filesystem::path state) : state_(state), reader_(std::move(state)) {}

  base::Result<std::vector<api::Sandbox>> sandboxes() override;
  base::Result<std::optional<api::Sandbox>> sandbox(const api::Key& key) override;
  base::Result<std::vector<api::SandboxProvider>> providers() override;
  base::Result<std::vector<api::RecordedEvent>> events() override;
  base::Result<std::vector<std::string>> warnings() override;
  std::string idleness() override;
  std::string origin(const api::Key& key) override;
  base::Result<Asked> set_desired_state(const api::Key& key, api::DesiredState state) override;
  base::Result<Asked> apply(const std::string& name, const std::string& text,
                            const std::string& space) override;
  base::Result<Asked> remove(const api::Key& key, const Removal& removal) override;
  base::Result<std::optional<std::string>> refusal(const std::string& request) override;

 private:
  std::filesystem::path state_;
  manifests::StateReader reader_;
};

}  // namespace cli
