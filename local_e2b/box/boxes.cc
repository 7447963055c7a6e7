#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/kernel_files.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "local_e2b/box/blueprint.h"
#include "local_e2b/box/box.h"
#include "local_e2b/box/cgroup.h"
#include "local_e2b/box/etc.h"
#include "local_e2b/box/init_note.h"
#include "local_e2b/box/orphans.h"
#include "local_e2b/box/remove_tree.h"
#include "local_e2b/box/start_builder.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

using base::ErrorCode;

constexpr base::Milliseconds kBuildMax{30'000};
constexpr base::Milliseconds kFreezeMax{10'000};
constexpr base::Milliseconds kKillMax{15'000};
constexpr std::size_t kIdMax = 63;  // A host name is no longer.

bool is_id(const std::string& id) {
  return !id.empty() && id.size() <= kIdMax && id[0] != '-' &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return c < 128 && (std::isalnum(c) || c == '-' || c == '_');
         });
}

void add_range(const fs::path& path, std::set<std::uint32_t>& taken) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return;
  if (const auto range = range_of(found.st_uid)) taken.insert(*range);
}

// The folders of boxes are the record of who has which range; cgroups also show the boxes of other
// servers on this machine.
std::set<std::uint32_t> taken_ranges(const fs::path& boxes, const fs::path& cgroup2) {
  std::set<std::uint32_t> taken;
  for (const fs::path& box : base::entries_of(boxes)) add_range(box / "layers", taken);
  for (const fs::path& server : base::entries_of(cgroup2))
    for (const fs::path& box : base::entries_of(server)) add_range(box, taken);
  return taken;
}

base::Result<base::Done> make_owned(const fs::path& folder, const BoxIds& owner) {
  if (::mkdir(folder.c_str(), 0755) != 0 || ::chmod(folder.c_str(), 0755) != 0 ||
      ::chown(folder.c_str(), owner.uid, owner.gid) != 0)
    return base::errno_error("make folder", folder, errno);
  return base::Done{};
}

std::string cure_for(const std::string& step) {
  if (step == "mount /proc" || step == "mount /sys")
    return "; in a container, run it with /proc and /sys unmasked";
  if (step == "lay the overlays")
    return "; the state folder must be on ext4, xfs, btrfs or tmpfs, not on an overlay";
  if (step == "open the mounts")
    return "; the folders shown to boxes and the executor must be on ext4, xfs, btrfs or tmpfs";
  if (step == "open its own mounts")
    return "; no other file system may be mounted beneath a folder that an ordinary user shows to "
           "boxes";
  if (step == "start init") return "; see the limits in /proc/sys/user";
  return "";
}

}  // namespace

Boxes::Boxes(BoxSettings settings, Capabilities capabilities)
    : settings_(std::move(settings)), capabilities_(std::move(capabilities)) {}

fs::path Boxes::folder_of(const std::string& id) const { return settings_.state / "boxes" / id; }

// The folder of all boxes' cgroups; empty where the server may make none.
fs::path Boxes::own_cgroup() const {
  return capabilities_.cgroup2.empty() ? fs::path() : capabilities_.cgroup2 / settings_.cgroup_name;
}

fs::path Boxes::cgroup_of(const std::string& id) const {
  const fs::path own = own_cgroup();
  return own.empty() ? own : own / id;
}

// Another server on the same state folder may have made it where it was allowed to make cgroups.
bool Boxes::may_be_cgroup_of(const std::string& id, const fs::path& cgroup) const {
  return cgroup.empty() ||
         (cgroup.filename() == id && cgroup.parent_path().filename() == settings_.cgroup_name);
}

base::Result<BoxRecord> Boxes::create(const BoxSpec& spec) {
  if (!capabilities_.lacks.empty())
    return base::error(ErrorCode::kUnavailable,
                       "this machine cannot hold a box: ", base::join(capabilities_.lacks, "; "));
  if (!is_id(spec.id))
    return base::error(ErrorCode::kInvalid, "\"", spec.id,
                       "\" cannot name a box: use 1 to 63 letters, digits, '-' and '_'");
  for (const fs::path& lower : settings_.extra_lowers)
    if (const auto objection = objection_to_lower(lower, settings_.state))
      return base::error(ErrorCode::kInvalid, "boxes cannot be shown ", lower.string(), ": ",
                         *objection);
  CHECK_OK(prepare());
  TRY(const BoxIds ids, claim(spec.id));
  auto record = build(spec, ids);
  if (record) return record;
  if (const auto removed = remove(spec.id, cgroup_of(spec.id)); !removed)
    base::log::warn("half-made box stays", {{"box", spec.id}, {"why", removed.error()}});
  return record;
}

// The copy of /etc is made by the first box of this server.
base::Result<base::Done> Boxes::prepare() {
  const std::lock_guard lock(mutex_);
  if (!etc_.empty()) return base::Done{};
  TRY(etc_, prepare_etc(settings_.state, settings_.state / "boxes", !capabilities_.root));
  return base::Done{};
}

base::Result<BoxIds> Boxes::choose_ids() const {
  if (!capabilities_.root) return own_ids();
  const auto first = free_range(taken_ranges(settings_.state / "boxes", capabilities_.cgroup2));
  if (first) return range_from(*first);
  return base::error(ErrorCode::kRateLimited, "all ", std::to_string(kBoxesMax),
                     " uid ranges for boxes are taken; remove a box first");
}

// From here on folder and cgroup say who has the range, also to the next server.
base::Result<BoxIds> Boxes::claim(const std::string& id) {
  std::unique_lock lock(mutex_);
  CHECK_OK(base::make_folders(settings_.state / "boxes", 0700));
  TRY(const BoxIds ids, choose_ids());
  const Cgroup cgroup(cgroup_of(id));
  const fs::path folder = folder_of(id);
  if (cgroup.exists() || (::mkdir(folder.c_str(), 0700) != 0 && errno == EEXIST))
    return base::error(ErrorCode::kConflict, "there is a box ", id, " already");
  auto made = make_owned(folder / "layers", ids);
  if (made) made = make_owned(folder / "root", ids);
  if (made && ::symlink(etc_.c_str(), (folder / kEtcLink).c_str()) != 0)
    made = base::errno_error("make link", folder / kEtcLink, errno);
  if (made && !cgroup_of(id).empty()) made = cgroup.make(ids.uid, ids.gid);
  if (made) return ids;
  lock.unlock();  // remove takes it.
  (void)remove(id, cgroup_of(id));
  return made.error();
}

base::Result<BoxRecord> Boxes::build(const BoxSpec& spec, const BoxIds& ids) {
  std::string digest;
  if (spec.executor_baked_in) {
    TRY(digest, executor_digest_.of(settings_.executor));
  }
  const Blueprint plan{.id = spec.id,
                       .folder = folder_of(spec.id),
                       .cgroup = cgroup_of(spec.id),
                       .executor = settings_.executor,
                       .etc = etc_,
                       .executor_baked_in = spec.executor_baked_in,
                       .executor_digest = std::move(digest),
                       .extra_lowers = settings_.extra_lowers,
                       .ids = ids,
                       .server_pid = ::getpid(),
                       .descriptors = settings_.descriptors,
                       .fail_at = settings_.fail_at};
  const Built built = run_builder(settings_.builder, plan, kBuildMax);
  const auto init = built.init_pid > 0 ? base::look_at_process(built.init_pid) : std::nullopt;
  if (built.init_pid > 0) {
    const std::lock_guard lock(mutex_);
    children_[spec.id] = built.init_pid;
  }
  if (built.failure || !init) {
    const StepFailure why =
        built.failure.value_or(StepFailure{"start the executor", "init is gone at once"});
    return base::error(ErrorCode::kUnavailable, "cannot build box ", spec.id, " at the step \"",
                       why.step, "\": ", why.message, cure_for(why.step));
  }
  return BoxRecord{spec.id, built.init_pid, init->start, plan.folder, plan.cgroup, ids.uid};
}

Boxes::Life Boxes::look_at(const BoxRecord& record) const {
  const fs::path proc = fs::path("/proc") / std::to_string(record.init_pid);
  // A process that is gone has no files; any other failure is ours, of descriptors or memory.
  const auto unread = [](const base::Error& why) {
    return why.code == ErrorCode::kNotFound ? Life::kDead : Life::kUnknown;
  };
  const auto stat = base::read_file(proc / "stat");
  if (!stat) return unread(stat.error());
  const auto init = base::parse_process(base::trim(*stat));
  if (!init) return Life::kUnknown;
  if (init->start != record.init_start || init->ended()) return Life::kDead;
  if (record.cgroup.empty()) {
    const auto noted = read_init_note(record.folder), seen = note_of(record.init_pid);
    if (!noted || !seen) return Life::kUnknown;
    return *noted == *seen ? Life::kAlive : Life::kDead;
  }
  const auto cgroups = base::read_file(proc / "cgroup");
  if (!cgroups) return unread(cgroups.error());
  return is_in_cgroup(*cgroups, settings_.cgroup_name, record.id) ? Life::kAlive : Life::kDead;
}

bool Boxes::alive(const BoxRecord& record) const { return look_at(record) == Life::kAlive; }
bool Boxes::dead(const BoxRecord& record) const { return look_at(record) == Life::kDead; }

std::optional<std::string> Boxes::objection_to_freeze(const BoxRecord* record) const {
  if (record ? !record->cgroup.empty() : capabilities_.no_pause.empty()) return std::nullopt;
  if (!capabilities_.no_pause.empty()) return capabilities_.no_pause;
  return "it was made by a server that could make no cgroups";
}

base::Result<base::Done> Boxes::freeze(const BoxRecord& record) {
  if (!alive(record))
    return base::error(ErrorCode::kNotFound, "box ", record.id, " is not running");
  if (const auto objection = objection_to_freeze(&record))
    return base::error(ErrorCode::kInvalid, "box ", record.id, " cannot be paused: ", *objection);
  CHECK_OK(Cgroup(record.cgroup).freeze(kFreezeMax));
  return trim_log(record);
}

base::Result<base::Done> Boxes::thaw(const BoxRecord& record) {
  if (!alive(record))
    return base::error(ErrorCode::kNotFound, "box ", record.id, " is not running");
  if (record.cgroup.empty()) return base::Done{};
  return Cgroup(record.cgroup).thaw(kFreezeMax);
}

bool Boxes::frozen(const BoxRecord& record) const {
  return !record.cgroup.empty() && Cgroup(record.cgroup).frozen();
}

base::Result<base::Done> Boxes::destroy(const BoxRecord& record) {
  // What is removed is named by the id and by us, so a damaged record cannot point elsewhere.
  if (!is_id(record.id) || record.folder != folder_of(record.id) ||
      !may_be_cgroup_of(record.id, record.cgroup))
    return base::error(ErrorCode::kInvalid, "the record of box \"", record.id,
                       "\" does not belong to the state folder ", settings_.state.string());
  return remove(record.id, record.cgroup);
}

base::Result<base::Done> Boxes::remove(const std::string& id, const fs::path& path) {
  const Cgroup cgroup(path);
  if (cgroup.exists()) CHECK_OK(cgroup.kill(kKillMax));
  if (const auto note = read_init_note(folder_of(id))) CHECK_OK(end_init(*note, kKillMax));
  reap(id);
  if (cgroup.exists()) CHECK_OK(cgroup.remove(kKillMax));
  remove_empty(path.parent_path());
  return remove_tree(folder_of(id));
}

// The last box takes its server's cgroup with it; with others in it, this fails as it should.
void Boxes::remove_empty(const fs::path& cgroup) {
  const std::lock_guard lock(mutex_);
  if (!cgroup.empty()) ::rmdir(cgroup.c_str());
}

// For an init that is dead or about to be: only of those that are our children, which a pid from a
// record may not be.
void Boxes::reap(const std::string& id) {
  pid_t child = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = children_.find(id);
    if (found == children_.end()) return;
    child = found->second;
    children_.erase(found);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Swept Boxes::destroy_unknown(const std::vector<BoxRecord>& known) {
  std::set<std::string> ids;
  for (const fs::path& box : base::entries_of(settings_.state / "boxes"))
    ids.insert(box.filename());
  for (const fs::path& box : base::entries_of(own_cgroup())) {
    std::error_code failed;
    if (fs::is_directory(box, failed)) ids.insert(box.filename());
  }
  for (const BoxRecord& record : known) ids.erase(record.id);
  Swept swept;
  for (const std::string& id : ids) {
    if (!is_id(id)) continue;
    const auto removed = remove(id, cgroup_of(id));
    if (removed) {
      swept.destroyed.push_back(id);
      continue;
    }
    base::log::warn("unknown box stays", {{"box", id}, {"why", removed.error()}});
    swept.left.push_back({.id = id, .folder = folder_of(id), .cgroup = cgroup_of(id)});
  }
  remove_empty(own_cgroup());  // Of a server that died just before it did.
  return swept;
}

std::vector<std::string> Boxes::destroy_orphans() {
  return local_e2b::destroy_orphans(capabilities_.cgroup2);
}

base::Result<base::Done> Boxes::trim_log(const BoxRecord& record) const {
  const fs::path file = record.folder / "envd.log";
  const base::Fd log(::open(file.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found{};
  if (!log || ::fstat(log.get(), &found) != 0) return base::errno_error("open", file, errno);
  if (static_cast<std::size_t>(found.st_size) <= kLogBytesMax) return base::Done{};
  // Its writers append, so they go on at the new end.
  if (::ftruncate(log.get(), 0) != 0) return base::errno_error("cut", file, errno);
  return base::Done{};
}

}  // namespace local_e2b
