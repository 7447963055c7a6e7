#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/api/resource_store.h"

namespace cli {

// Which of a collection.
struct Where {
  std::string space = {};  // Empty: in every namespace.
  std::string name = {};   // Empty: of any name. Of events: the name of what they are about.
  bool operator==(const Where&) const = default;
};
inline bool is_in(const Where& where, const api::Key& key) {
  return (where.space.empty() || where.space == key.space) &&
         (where.name.empty() || where.name == key.name);
}

enum class Collection { kSandboxes, kProviders, kEvents };
struct Query {
  Collection of = Collection::kSandboxes;
  Where where = {};
  bool operator==(const Query&) const = default;
};

struct Manifest {
  std::string name = {};  // The file that the text came from; empty: standard input.
  std::string text = {};
  std::string space = {};        // Of what names no namespace.
  bool force_conflicts = false;  // Also what others have set.
};

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

// Where the resources are. Each call answers as of now; nothing waits for the controller.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string default_space() = 0;  // For who names no namespace.
  virtual base::Result<std::vector<api::Sandbox>> sandboxes(const Where& where) = 0;
  virtual base::Result<std::optional<api::Sandbox>> sandbox(const api::Key& key) = 0;
  // All of them when `name` is empty.
  virtual base::Result<std::vector<api::SandboxProvider>> providers(const std::string& name) = 0;
  // About sandboxes; oldest first.
  virtual base::Result<std::vector<api::RecordedEvent>> events(const Where& regarding) = 0;
  // Between two looks at what `query` names: returns when that may have changed, and after `most`
  // in any case. False: look no more.
  virtual bool await_change(const Query& query, base::Milliseconds most) = 0;

  // What a person should know before trusting an answer: broken manifests, a brake.
  virtual base::Result<std::vector<std::string>> warnings() = 0;
  // Why nobody keeps what is shown as it was declared, and what to do; empty when somebody does, or
  // when that cannot be told.
  virtual std::string idleness() = 0;
  // Where the object was declared, for people; empty when that is unknown.
  virtual std::string origin(const api::Key& key) = 0;

  // Of the object that was seen; another of its name stays as it is.
  virtual base::Result<Asked> set_desired_state(const api::Sandbox& seen,
                                                api::DesiredState state) = 0;
  // Resumes what is paused because it idled.
  virtual base::Result<Asked> request_wake(const api::Sandbox& seen) = 0;
  // A look of the controller now, at what it waits with or takes for settled.
  virtual base::Result<Asked> request_look(const api::Sandbox& seen) = 0;
  virtual base::Result<Asked> apply(const Manifest& manifest) = 0;
  virtual base::Result<Asked> remove(const api::Sandbox& seen, const Removal& removal) = 0;
  // Why the controller will not do what was requested; nothing: it has, or has not answered yet, or
  // its answer is no longer kept.
  virtual base::Result<std::optional<std::string>> refusal(const std::string& request) = 0;
};

}  // namespace cli
