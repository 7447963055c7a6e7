#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libs/api/resource_store.h"
#include "libs/manifests/reading.h"

namespace manifests {

// Why nothing is being deleted, until a person releases it.
struct Brake {
  std::string id;
  std::string reason;
  base::WallTime since = {};
  bool operator==(const Brake&) const = default;
};

struct Source {
  std::filesystem::path file;  // Absolute.
  int document = 0;
  bool operator==(const Source&) const = default;
};

// Where the controller of a state folder answers who wants into a sandbox (docs/design/attach.md).
std::filesystem::path attach_socket_in(const std::filesystem::path& state);

// Reads a state folder beside the controller that owns it, without a lock: every file in it is
// replaced atomically, so each answer is whole, though two answers may be of different moments.
// Errors name the folder; kNotFound: it is no state folder.
class StateReader {
 public:
  explicit StateReader(std::filesystem::path state) : state_(std::move(state)) {}

  base::Result<std::vector<api::Sandbox>> sandboxes() const;  // By namespace and name.
  base::Result<std::optional<api::Sandbox>> sandbox(const api::Key& key) const;
  base::Result<std::vector<api::SandboxProvider>> providers() const;
  // By last occurrence, eldest first.
  base::Result<std::vector<api::RecordedEvent>> events() const;
  base::Result<std::vector<yaml::Problem>> problems() const;  // Of the manifests, as last read.
  base::Result<std::optional<Brake>> brake() const;
  base::Result<bool> held() const;                        // A controller is at work on it.
  base::Result<std::filesystem::path> manifests() const;  // The folder that is watched.
  // Where the object is declared; kNotFound when it is not on record.
  base::Result<Source> source_of(Kind kind, const api::Key& key) const;

 private:
  std::filesystem::path state_;
};

}  // namespace manifests
