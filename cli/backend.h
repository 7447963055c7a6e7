#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/api/resource_store.h"

namespace cli {

struct Removal {
  std::optional<api::DeletionPolicy> policy = {};  // Instead of the spec's.
  bool remove_manifest = false;                    // Also the file, when it holds nothing else.
};

// What was asked for, in words for the person who asked; of apply also what is then to come.
struct Asked {
  std::string what;
  std::map<api::Key, api::SandboxSpec> sandboxes = {};
  std::string request = {};  // Of remove: by which to ask what the controller says to it.
};

// Where the resources are. Everything is read anew on each
// call; nothing waits for the controller.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual base::Result<std::vector<api::Sandbox>> sandboxes() = 0;
  virtual base::Result<std::optional<api::Sandbox>> sandbox(const api::Key& key) = 0;
  virtual base::Result<std::vector<api::SandboxProvider>> providers() = 0;
  virtual base::Result<std::vector<api::RecordedEvent>> events() = 0;  // Oldest first.
  // What a person should know before trusting an answer: broken manifests, a brake.
  virtual base::Result<std::vector<std::string>> warnings() = 0;
  // Why nobody keeps what is shown as it was declared, and what to do; empty when somebody does, or
  // when that cannot be told.
  virtual std::string idleness() = 0;
  // Where the object was declared, for people; empty when that is unknown.
  virtual std::string origin(const api::Key& key) = 0;

  virtual base::Result<Asked> set_desired_state(const api::Key& key, api::DesiredState state) = 0;
  // `name` is the file that the text came from, empty for standard input.
  virtual base::Result<Asked> apply(const std::string& name, const std::string& text,
                                    const std::string& space) = 0;
  virtual base::Result<Asked> remove(const api::Key& key, const Removal& removal) = 0;
  // Why the controller will not do what was requested; nothing: it has, or has not answered yet, or
  // its answer is no longer kept.
  virtual base::Result<std::optional<std::string>> refusal(const std::string& request) = 0;
};

}  // namespace cli
