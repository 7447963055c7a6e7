#pragma once

#include <compare>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libs/api/provider.h"
#include "libs/api/sandbox.h"
#include "libs/manifests/reading.h"
#include "libs/manifests/state_reader.h"

// What stands in a state folder, and where.
namespace manifests {

struct Id {
  Kind kind = Kind::kSandbox;
  api::Key key;
  auto operator<=>(const Id&) const = default;
};
std::string to_text(const Id& id);  // "Sandbox team-a/web"
base::Json to_json(const Id& id);
Id id_from_json(const base::Json& json);

// One object as the state folder keeps it, in one file. Without an object it is a tombstone: the
// object was deleted, its document is still there, and is passed over until it changes.
struct Record {
  Id id;
  std::shared_ptr<const api::Sandbox> sandbox = {};
  std::shared_ptr<const api::SandboxProvider> provider = {};
  // The document in force: where it stands, and what it declared, so that an edit can take away
  // what the document before it gave.
  std::string file = {};
  int document = 0;
  std::string digest = {};
  std::map<std::string, std::string> labels = {}, annotations = {};
  bool passed_over = false;  // Deleted while its document stayed.

  bool tombstone() const { return !sandbox && !provider; }
  const api::Metadata* metadata() const {
    return sandbox ? &sandbox->metadata : provider ? &provider->metadata : nullptr;
  }
  bool deleting() const { return metadata() && metadata()->deleted.has_value(); }
};

base::Json to_json(const Record& record);
base::Result<Record> record_from_json(const base::Json& json);

// Names within a state folder.
struct Layout {
  std::filesystem::path state;

  std::filesystem::path record(const Id& id) const;
  std::filesystem::path records(Kind kind) const;
  std::filesystem::path journal() const { return state / "journal"; }
  std::filesystem::path facts() const { return state / "state.json"; }
  std::filesystem::path lock() const { return state / "lock"; }
  std::filesystem::path attach_socket() const { return state / "attach.sock"; }
  std::filesystem::path brake() const { return state / "brake.json"; }
  std::filesystem::path problems() const { return state / "problems.json"; }
  std::filesystem::path events() const { return state / "events.log"; }
  std::filesystem::path fleet_key() const { return state / "fleet.key"; }
  std::filesystem::path recovered() const { return state / "recovered.json"; }
  std::filesystem::path secrets() const { return state / "secrets.json"; }
  std::filesystem::path releases() const { return state / "releases"; }
  std::filesystem::path ways_in() const { return state / "ways-in"; }
  std::filesystem::path requests() const { return state / "requests"; }
  std::filesystem::path results() const { return state / "requests" / "results"; }
};

// What a state folder knows about its manifests.
struct Facts {
  std::string fleet_id;
  std::string manifests;  // Absolute path.
  std::uint64_t device = 0, inode = 0;
  bool operator==(const Facts&) const = default;
};
base::Json to_json(const Facts& facts);
base::Result<Facts> facts_from_json(const base::Json& json);
base::Json to_json(const Brake& brake);
base::Result<Brake> brake_from_json(const base::Json& json);

inline constexpr std::string_view kRestoreOrRemove = "restore it from a copy, or remove it";
// A JSON file that may be absent; errors name the path, and what to do about one that is spoilt.
base::Result<std::optional<base::Json>> read_json_file(const std::filesystem::path& path,
                                                       std::string_view cure = kRestoreOrRemove);
// FOLDER/NAME.json, or kInvalid when `name` could lead elsewhere or be taken for a staged file;
// `what` it is no instance of, for the message ("UID").
base::Result<std::filesystem::path> json_file_of(const std::filesystem::path& folder,
                                                 const std::string& name, std::string_view what);
bool is_record(const std::filesystem::path& file);  // By its name.
// One record's file; nothing: it is not there any more. Errors say what to do about a spoilt one.
base::Result<std::optional<Record>> read_record(const std::filesystem::path& path, Kind kind);
// Every record of a state folder that has a file.
base::Result<std::vector<Record>> read_records(const Layout& layout, Kind kind);
// The same, with why files cannot be read for those that cannot.
struct RecordFiles {
  std::vector<Record> records;
  std::map<std::filesystem::path, base::Error> unreadable;
};
RecordFiles read_record_files(const Layout& layout, Kind kind);

}  // namespace manifests
