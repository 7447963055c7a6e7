#include "libs/manifests/folder_guard.h"

#include "libs/base/crypto.h"
#include "libs/base/log.h"
#include "libs/base/time.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Json;
using base::Result;

Result<Done> FolderGuard::open() {
  machine_ = options_.machine_id.empty() ? this_machine() : options_.machine_id;
  TRY(const auto json, read_json_file(layout_.facts()));
  if (json) {
    auto facts = facts_from_json(*json);
    if (!facts)
      return base::error(ErrorCode::kInvalid, layout_.facts().string(), " ", facts.error().message);
    facts_ = *std::move(facts);
  }
  const bool fresh = !json;
  const auto place = place_of(options_.manifests);
  if (!place && !fresh) return Done{};  // trouble() says so until it is back.
  if (!place)
    return base::error(place.error().code,
                       "the folder of manifests cannot be used: ", place.error().message,
                       "; make it first");
  const bool same = Place{facts_.device, facts_.inode} == *place;
  if (!fresh && !same && !options_.claim_moved_manifests) return Done{};
  return attach(fresh);
}

// Lock first: nothing of a folder that another controller holds is believed.
Result<Done> FolderGuard::attach(bool fresh) {
  TRY(const auto place, place_of(options_.manifests));
  TRY(lock_, lock_folder(options_.manifests));
  TRY(auto identity, IdentityFolder::open(options_.manifests, layout_.state / "identity", disk_));
  identity_.emplace(std::move(identity));
  TRY(const auto fleet_id, choose_fleet_id());
  if (facts_.fleet_id.empty()) facts_.fleet_id = fleet_id;  // Others read it once it is there.
  CHECK_OK(claim(place));
  return recover(fresh);
}

Result<std::string> FolderGuard::choose_fleet_id() const {
  const auto& known = identity_->identity();
  const std::string inside = known ? known->fleet_id : "";
  const auto refuse = [&](const std::string& other, const char* whose) {
    return base::error(ErrorCode::kInvalid, options_.manifests.string(),
                       " belongs to the installation ", inside, ", but ", whose, " says ", other,
                       "; give each folder of manifests the state folder that it was used with");
  };
  if (!inside.empty() && !facts_.fleet_id.empty() && inside != facts_.fleet_id)
    return refuse(facts_.fleet_id, "the state folder");
  if (!inside.empty() && !options_.fleet_id.empty() && inside != options_.fleet_id)
    return refuse(options_.fleet_id, "the flag for the fleet id");
  for (const std::string& id : {inside, facts_.fleet_id, options_.fleet_id})
    if (!id.empty()) return id;
  return base::random_uuid();
}

Result<Done> FolderGuard::claim(const Place& place) {
  const auto& known = identity_->identity();
  if (known) {
    const std::string foreign = foreign_reason(*known, machine_, place);
    if (!foreign.empty() && !options_.claim_moved_manifests)
      return base::error(
          ErrorCode::kInvalid, "the identity in ", (options_.manifests / ".sandfleet").string(),
          " ", foreign,
          ": it was moved or copied. If it was moved and nothing else uses it, start again "
          "with the flag that claims moved manifests; if it is a copy, remove its "
          ".sandfleet folder and it becomes an installation of its own");
  }
  const Identity wanted{facts_.fleet_id, machine_, place.inode};
  if (known != wanted) CHECK_OK(identity_->write_identity(wanted));
  std::error_code error;
  facts_.manifests = fs::absolute(options_.manifests, error).string();
  facts_.device = place.device;
  facts_.inode = place.inode;
  return Done{};
}

// A new state folder takes over the UIDs that the manifests remember; only it does: otherwise an
// object without a record is one that was deleted, and whatever comes by its name is another.
Result<Done> FolderGuard::recover(bool fresh) {
  if (fresh) {
    recovered_ = identity_->births();
    CHECK_OK(write_recovered());
    return write_facts();
  }
  TRY(const auto json, read_json_file(layout_.recovered()));
  if (json && json->is_array()) {
    for (const Json& each : *json) {
      const Id id = id_from_json(each);
      const auto created = base::parse_rfc3339(base::text_at(each, "created").value_or(""));
      recovered_[id] = {base::text_at(each, "uid").value_or(""),
                        created ? *created : base::WallTime{}};
    }
  }
  return write_facts();
}

Result<Done> FolderGuard::write_facts() {
  const std::string content = base::to_text(to_json(facts_), 2) + "\n";
  const auto before = base::read_file(layout_.facts());
  if (before && *before == content) return Done{};
  return disk_.write(layout_.facts(), content, 0600);
}

Result<Done> FolderGuard::write_recovered() {
  if (recovered_.empty()) return disk_.remove(layout_.recovered());
  Json json = Json::array();
  for (const auto& [id, birth] : recovered_) {
    Json each = to_json(id);
    each["uid"] = birth.uid;
    each["created"] = base::to_rfc3339(birth.created);
    json.push_back(std::move(each));
  }
  return disk_.write(layout_.recovered(), base::to_text(json), 0600);
}

std::optional<std::string> FolderGuard::trouble() {
  const auto place = place_of(options_.manifests);
  if (!place) return place.error().message;
  if (Place{facts_.device, facts_.inode} != *place)
    return options_.manifests.string() + " is another folder than before";
  if (identity_) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto attached = attach(false);
  if (attached) return std::nullopt;
  identity_.reset();
  lock_.reset();
  return attached.error().message;
}

Result<Done> FolderGuard::accept(const std::map<Id, Birth>& births) {
  TRY(const auto place, place_of(options_.manifests));
  if (identity_ && Place{facts_.device, facts_.inode} == place) return Done{};
  std::lock_guard lock(mutex_);
  TRY(auto folder_lock, lock_folder(options_.manifests));
  TRY(auto identity, IdentityFolder::open(options_.manifests, layout_.state / "identity", disk_));
  const auto& known = identity.identity();
  if (known && known->fleet_id != facts_.fleet_id)
    return base::error(ErrorCode::kInvalid, options_.manifests.string(),
                       " belongs to the installation ", known->fleet_id,
                       "; remove its .sandfleet folder if it is to be this one's");
  const Identity wanted{facts_.fleet_id, machine_, place.inode};
  CHECK_OK(identity.replace(births));
  if (known != wanted) CHECK_OK(identity.write_identity(wanted));
  facts_.device = place.device;
  facts_.inode = place.inode;
  identity_.emplace(std::move(identity));
  lock_ = std::move(folder_lock);
  return write_facts();
}

std::string FolderGuard::notice() const {
  if (!identity_ || identity_->in_manifests()) return "";
  return options_.manifests.string() +
         " cannot be written, so its identity and UIDs are kept in the state folder alone: should "
         "that be lost, the sandboxes of now are no longer known, and have to be ended by hand";
}

Result<std::map<Id, Birth>> FolderGuard::give_birth(const std::vector<Id>& ids,
                                                    base::WallTime now) {
  std::lock_guard lock(mutex_);
  std::map<Id, Birth> births;
  for (const Id& id : ids) {
    const auto before = recovered_.find(id);
    births[id] = before == recovered_.end() ? Birth{base::random_uuid(), now} : before->second;
  }
  CHECK_OK(identity_->add(births));
  return births;
}

Result<Done> FolderGuard::sync_births() {
  std::lock_guard lock(mutex_);
  return identity_ ? identity_->sync() : Done{};
}

bool FolderGuard::recovered(const Id& id) {
  std::lock_guard lock(mutex_);
  return recovered_.contains(id);
}

Result<Done> FolderGuard::forget(const Id& id) {
  std::lock_guard lock(mutex_);
  if (recovered_.erase(id) > 0) CHECK_OK(write_recovered());
  // Best effort: the record is what counts, and the list is made right at the next start.
  if (identity_)
    if (auto forgotten = identity_->forget(id); !forgotten)
      base::log::warn("a UID stays on the list of the manifests", {{"error", forgotten.error()}});
  return Done{};
}

Result<Done> FolderGuard::reconcile(const std::map<Id, Birth>& births) {
  if (!identity_) return Done{};
  std::map<Id, Birth> wanted = births;
  wanted.insert(recovered_.begin(), recovered_.end());
  return identity_->replace(wanted);
}

}  // namespace manifests
