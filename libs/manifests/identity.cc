#include "libs/manifests/identity.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr std::size_t kSpareLinesMax = 1000;  // Lines of the journal that say nothing any more.

std::string line_of(const Id& id, const Birth* birth) {
  Json json = to_json(id);
  if (birth) {
    json["uid"] = birth->uid;
    json["created"] = base::to_rfc3339(birth->created);
  }
  return base::to_text(json) + "\n";
}

// A line that a crash cut short is passed over: what it would have said was not relied upon yet.
void read_line(const std::string& line, std::map<Id, Birth>& births) {
  const auto json = base::parse_json(line);
  if (!json || !json->is_object()) return;
  const Id id = id_from_json(*json);
  if (id.key.name.empty()) return;
  const auto uid = base::text_at(*json, "uid");
  const auto created = base::parse_rfc3339(base::text_at(*json, "created").value_or(""));
  if (uid && created)
    births[id] = {*uid, *created};
  else
    births.erase(id);
}

Result<std::optional<Identity>> read_identity(const fs::path& path) {
  TRY(const auto json, read_json_file(path));
  if (!json) return std::optional<Identity>();
  const auto fleet = base::text_at(*json, "fleetID");
  if (!fleet || fleet->empty())
    return base::error(ErrorCode::kInvalid, path.string(),
                       " names no fleetID; restore it from a copy, or remove its folder");
  return std::optional<Identity>(
      {*fleet, base::text_at(*json, "machine").value_or(""),
       static_cast<std::uint64_t>(base::integer_at(*json, "inode").value_or(0))});
}

// Tries what a change would need: permissions alone do not tell of a read-only mount.
bool writable(const fs::path& folder) {
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

}  // namespace

Result<Place> place_of(const fs::path& folder) {
  struct stat found{};
  if (::stat(folder.c_str(), &found) != 0) return base::errno_error("look at", folder, errno);
  if (!S_ISDIR(found.st_mode))
    return base::error(ErrorCode::kNotFound, folder.string(), " is not a folder");
  return Place{found.st_dev, found.st_ino};
}

Result<base::Fd> lock_folder(const fs::path& folder) {
  base::Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return base::errno_error("open", folder, errno);
  if (::flock(opened.get(), LOCK_EX | LOCK_NB) == 0) return opened;
  if (errno == EWOULDBLOCK)
    return base::error(ErrorCode::kConflict, folder.string(),
                       " is used by another controller; stop it, or give this one its own folder");
  return base::errno_error("lock", folder, errno);
}

std::string this_machine() {
  const auto id = base::read_file("/etc/machine-id", 4096);
  // The id itself is meant to stay on its machine.
  return id ? base::to_hex(base::sha256("sandfleet:" + std::string(base::trim(*id)))).substr(0, 32)
            : "";
}

std::string foreign_reason(const Identity& identity, const std::string& machine,
                           const Place& place) {
  if (identity.machine != machine) return "was made on another machine";
  if (identity.inode != place.inode) return "was made for another folder";
  return "";
}

std::map<Id, Birth> births_of(const std::map<Id, std::shared_ptr<const Record>>& records) {
  std::map<Id, Birth> births;
  for (const auto& [id, record] : records)
    if (const api::Metadata* metadata = record->metadata())
      births[id] = {metadata->uid, metadata->created.value_or(base::WallTime{})};
  return births;
}

Result<IdentityFolder> IdentityFolder::open(const fs::path& manifests, const fs::path& fallback,
                                            const Disk& disk) {
  IdentityFolder opened(disk);
  const fs::path inside = manifests / ".sandfleet";
  std::error_code error;
  opened.in_manifests_ = writable(fs::is_directory(inside, error) ? inside : manifests);
  opened.folder_ = opened.in_manifests_ ? inside : fallback;
  CHECK_OK(disk.make_folders(opened.folder_));
  disk.sweep(opened.folder_);
  if (opened.in_manifests_ && !fs::exists(inside / ".gitignore", error))
    CHECK_OK(disk.write(inside / ".gitignore", "*\n", 0644));
  TRY(opened.identity_, read_identity(opened.folder_ / "identity.json"));
  fs::path journal = opened.journal();
  // A folder that became read-only is still read.
  if (!opened.in_manifests_ && !opened.identity_) {
    TRY(opened.identity_, read_identity(inside / "identity.json"));
    if (!fs::exists(journal, error)) journal = inside / "uids.log";
  }
  const auto lines = base::read_file(journal);
  if (!lines && lines.error().code != ErrorCode::kNotFound) return lines.error();
  if (lines)
    for (const std::string& line : base::split(*lines, '\n')) read_line(line, opened.births_);
  // Rewritten at the first change, so that nothing is added to a line that a crash cut short.
  opened.lines_ = opened.births_.size() + kSpareLinesMax + 1;
  return opened;
}

Result<Done> IdentityFolder::write_identity(const Identity& identity) {
  const Json json = {
      {"fleetID", identity.fleet_id}, {"machine", identity.machine}, {"inode", identity.inode}};
  CHECK_OK(disk_->write(folder_ / "identity.json", base::to_text(json, 2) + "\n", 0644));
  identity_ = identity;
  return Done{};
}

Result<Done> IdentityFolder::rewrite() {
  loose_ = doubtful_ = true;  // Unless it works.
  std::string lines;
  for (const auto& [id, birth] : births_) lines += line_of(id, &birth);
  CHECK_OK(disk_->write(journal(), lines, 0644));
  lines_ = births_.size();
  loose_ = doubtful_ = false;
  return Done{};
}

// Where that fails, a line may be there in part, and the next would be glued to it.
Result<Done> IdentityFolder::append(const std::string& lines, std::size_t count) {
  lines_ += count;
  if (doubtful_ || lines_ > births_.size() + kSpareLinesMax) return rewrite();
  auto appended = disk_->append(journal(), lines, 0644);
  doubtful_ = !appended;
  return appended;
}

Result<Done> IdentityFolder::add(const std::map<Id, Birth>& births) {
  std::string lines;
  std::size_t added = 0;
  for (const auto& [id, birth] : births) {
    const auto known = births_.find(id);
    if (known != births_.end() && known->second == birth) continue;
    births_[id] = birth;
    lines += line_of(id, &birth);
    ++added;
  }
  if (added == 0) return Done{};
  loose_ = true;
  return append(lines, added);
}

Result<Done> IdentityFolder::sync() {
  if (!loose_) return Done{};
  if (doubtful_) return rewrite();
  auto synced = disk_->sync(journal());
  doubtful_ = !synced;
  loose_ = doubtful_;
  return synced;
}

Result<Done> IdentityFolder::forget(const Id& id) {
  if (births_.erase(id) == 0) return Done{};
  return append(line_of(id, nullptr), 1);
}

Result<Done> IdentityFolder::replace(const std::map<Id, Birth>& births) {
  if (births == births_ && !doubtful_) return Done{};
  births_ = births;
  return rewrite();
}

}  // namespace manifests
