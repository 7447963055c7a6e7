#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/fd.h"
#include "libs/manifests/disk.h"
#include "libs/manifests/record.h"

namespace manifests {

// Where a folder of manifests is on this machine.
struct Place {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const Place&) const = default;
};
// kNotFound: there is no such folder.
base::Result<Place> place_of(const std::filesystem::path& folder);
// One holder at a time, also where nothing can be written; freed with the descriptor.
base::Result<base::Fd> lock_folder(const std::filesystem::path& folder);
// A name of this machine that survives reboots; "" when it has none.
std::string this_machine();

// What a folder of manifests says it is: DIR/.sandfleet/identity.json.
struct Identity {
  std::string fleet_id, machine;
  std::uint64_t inode = 0;
  bool operator==(const Identity&) const = default;
};

struct Birth {
  std::string uid;
  base::WallTime created = {};
  bool operator==(const Birth&) const = default;
};
std::map<Id, Birth> births_of(const std::map<Id, std::shared_ptr<const Record>>& records);

// DIR/.sandfleet: who this folder is, and the UIDs of its objects, so that a lost state folder does
// not lose sandboxes. Where DIR is read-only, the state folder stands in for it.
class IdentityFolder {
 public:
  // `fallback` is used when `manifests` cannot be written.
  static base::Result<IdentityFolder> open(const std::filesystem::path& manifests,
                                           const std::filesystem::path& fallback, const Disk& disk);

  bool in_manifests() const { return in_manifests_; }
  const std::optional<Identity>& identity() const { return identity_; }
  const std::map<Id, Birth>& births() const { return births_; }
  base::Result<base::Done> write_identity(const Identity& identity);
  // One write for all of them; durable after the next sync().
  base::Result<base::Done> add(const std::map<Id, Birth>& births);
  base::Result<base::Done> sync();
  base::Result<base::Done> forget(const Id& id);
  // Makes the list exactly these.
  base::Result<base::Done> replace(const std::map<Id, Birth>& births);

 private:
  explicit IdentityFolder(const Disk& disk) : disk_(&disk) {}
  std::filesystem::path journal() const { return folder_ / "uids.log"; }
  base::Result<base::Done> rewrite();
  base::Result<base::Done> append(const std::string& lines, std::size_t count);

  const Disk* disk_;
  std::filesystem::path folder_;
  bool in_manifests_ = true;
  std::optional<Identity> identity_;
  std::map<Id, Birth> births_;
  std::size_t lines_ = 0;
  bool loose_ = false;     // Something was added that is not synced.
  bool doubtful_ = false;  // A write or a sync failed: only writing the list anew helps.
};

// Why a folder with this identity may not be used here as it is; empty when it may.
std::string foreign_reason(const Identity& identity, const std::string& machine,
                           const Place& place);

}  // namespace manifests
