#pragma once

#include <optional>
#include <string>

#include "libs/manifests/file_store.h"
#include "libs/manifests/identity.h"

namespace manifests {

// Holds the folder of manifests: knows whether it is still the same, whose it is, and keeps its
// list of UIDs. Only the scan calls it, but for forget() and sync_births().
class FolderGuard {
 public:
  FolderGuard(const FileStoreOptions& options, Layout layout, const Disk& disk)
      : options_(options), layout_(std::move(layout)), disk_(disk) {}

  // Takes the folder for the first time, or again after a restart. A folder that is missing is an
  // error only when this state folder never saw it.
  base::Result<base::Done> open();

  // Nothing: the folder is there, and the one it was. Else why it cannot be compared with.
  std::optional<std::string> trouble();
  // Makes the folder that is there now the one that counts; `births` are its objects from now on.
  base::Result<base::Done> accept(const std::map<Id, Birth>& births);

  const std::string& fleet_id() const { return facts_.fleet_id; }
  std::string notice() const;

  // The UID of an object on record nowhere: the one it had before the state folder was lost, or a
  // new one. Durable for all of them after sync_births().
  base::Result<std::map<Id, Birth>> give_birth(const std::vector<Id>& ids, base::WallTime now);
  base::Result<base::Done> sync_births();
  bool recovered(const Id& id);  // Its UID is the one from before the state folder was lost.
  base::Result<base::Done> forget(const Id& id);
  // After a restart: the list in the folder becomes these and what was recovered.
  base::Result<base::Done> reconcile(const std::map<Id, Birth>& births);

 private:
  base::Result<base::Done> attach(bool fresh);
  base::Result<base::Done> claim(const Place& place);
  base::Result<base::Done> recover(bool fresh);
  base::Result<base::Done> write_recovered();
  base::Result<base::Done> write_facts();
  base::Result<std::string> choose_fleet_id() const;

  const FileStoreOptions& options_;
  const Layout layout_;
  const Disk& disk_;
  Facts facts_;
  std::string machine_;
  std::mutex mutex_;  // Of what forget() shares with the scan.
  base::Fd lock_;
  std::optional<IdentityFolder> identity_;
  std::map<Id, Birth> recovered_;
};

}  // namespace manifests
