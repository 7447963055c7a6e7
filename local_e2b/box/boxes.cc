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
#include "local_e2b/box/orphans.h"
#include "local_e2b/box/remove_tree.h"
#include "local_e2b/box/start_builder.h"
#include "local_e2b/box/uid_ranges.h"

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

base::Result<base::Done> make_owned(const fs::path& folder, uid_t owner) {
  if (::mkdir(folder.c_str(), 0755) != 0 || ::chmod(folder.c_str(), 0755) != 0 ||
      ::chown(folder.c_str(), owner, owner) != 0)
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
  if (step == "start init") return "; see the limits in /proc/sys/user";
  return "";
}

}  // namespace

Boxes::Boxes(BoxSettings settings, Capabilities capabilities)
    : settings_(std::move(settings)), capabilities_(std::move(capabilities)) {}

fs::path Boxes::folder_of(const std::string& id) const { return settings_.state / "boxes" / id; }

fs::path Boxes::cgroup_of(const std::string& id) const {
  return capabilities_.cgroup2 / settings_.cgroup_name / id;
}

base::Result<BoxRecord> Boxes::create(const BoxSpec& spec) {
  if (!capabilities_.root || !capabilities_.cgroup2_freeze || !capabilities_.idmapped_mounts)
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
  TRY(const std::uint32_t uid_base, claim(spec.id));
  auto record = build(spec, uid_base);
  if (record) return record;
  if (const auto removed = remove(spec.id); !removed)
    base::log::warn("half-made box stays", {{"box", spec.id}, {"why", removed.error()}});
  return record;
}

// The copy of /etc is made by the first box of this server.
base::Result<base::Done> Boxes::prepare() {
  const std::lock_guard lock(mutex_);
  if (!etc_.empty()) return base::Done{};
  TRY(etc_, prepare_etc(settings_.state, settings_.state / "boxes"));
  return base::Done{};
}

// From here on folder and cgroup say who has the range, also to the next server.
base::Result<std::uint32_t> Boxes::claim(const std::string& id) {
  std::unique_lock lock(mutex_);
  const fs::path boxes = settings_.state / "boxes";
  CHECK_OK(base::make_folders(boxes, 0700));
  const auto uid_base = free_range(taken_ranges(boxes, capabilities_.cgroup2));
  if (!uid_base)
    return base::error(ErrorCode::kRateLimited, "all ", std::to_string(kBoxesMax),
                       " uid ranges for boxes are taken; remove a box first");
  const Cgroup cgroup(cgroup_of(id));
  const fs::path folder = folder_of(id);
  if (cgroup.exists() || (::mkdir(folder.c_str(), 0700) != 0 && errno == EEXIST))
    return base::error(ErrorCode::kConflict, "there is a box ", id, " already");
  auto made = make_owned(folder / "layers", *uid_base);
  if (made) made = make_owned(folder / "root", *uid_base);
  if (made && ::symlink(etc_.c_str(), (folder / kEtcLink).c_str()) != 0)
    made = base::errno_error("make link", folder / kEtcLink, errno);
  if (made) made = cgroup.make(*uid_base);
  if (made) return *uid_base;
  lock.unlock();  // remove takes it.
  (void)remove(id);
  return made.error();
}

base::Result<BoxRecord> Boxes::build(const BoxSpec& spec, std::uint32_t uid_base) {
  const Blueprint plan{.id = spec.id,
                       .folder = folder_of(spec.id),
                       .cgroup = cgroup_of(spec.id),
                       .executor = settings_.executor,
                       .etc = etc_,
                       .executor_baked_in = spec.executor_baked_in,
                       .extra_lowers = settings_.extra_lowers,
                       .uid_base = uid_base,
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
  return BoxRecord{spec.id, built.init_pid, init->start, plan.folder, plan.cgroup, uid_base};
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
  const auto cgroups = base::read_file(proc / "cgroup");
  if (!cgroups) return unread(cgroups.error());
  return is_in_cgroup(*cgroups, settings_.cgroup_name, record.id) ? Life::kAlive : Life::kDead;
}

bool Boxes::alive(const BoxRecord& record) const { return look_at(record) == Life::kAlive; }
bool Boxes::dead(const BoxRecord& record) const { return look_at(record) == Life::kDead; }

base::Result<base::Done> Boxes::freeze(const BoxRecord& record) {
  if (!alive(record))
    return base::error(ErrorCode::kNotFound, "box ", record.id, " is not running");
  CHECK_OK(Cgroup(record.cgroup).freeze(kFreezeMax));
  return trim_log(record);
}

base::Result<base::Done> Boxes::thaw(const BoxRecord& record) {
  if (!alive(record))
    return base::error(ErrorCode::kNotFound, "box ", record.id, " is not running");
  return Cgroup(record.cgroup).thaw(kFreezeMax);
}

bool Boxes::frozen(const BoxRecord& record) const { return Cgroup(record.cgroup).frozen(); }

base::Result<base::Done> Boxes::destroy(const BoxRecord& record) {
  // What is removed is derived from the id alone, so a damaged record cannot point elsewhere.
  if (!is_id(record.id) || record.folder != folder_of(record.id) ||
      record.cgroup != cgroup_of(record.id))
    return base::error(ErrorCode::kInvalid, "the record of box \"", record.id,
                       "\" does not belong to the state folder ", settings_.state.string());
  return remove(record.id);
}

base::Result<base::Done> Boxes::remove(const std::string& id) {
  const Cgroup cgroup(cgroup_of(id));
  if (cgroup.exists()) CHECK_OK(cgroup.kill(kKillMax));
  reap(id);
  if (cgroup.exists()) CHECK_OK(cgroup.remove(kKillMax));
  remove_empty_cgroup();
  return remove_tree(folder_of(id));
}

// The last box takes the server's cgroup with it; with others in it, this fails as it should.
void Boxes::remove_empty_cgroup() {
  const std::lock_guard lock(mutex_);
  ::rmdir((capabilities_.cgroup2 / settings_.cgroup_name).c_str());
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
  for (const fs::path& box : base::entries_of(capabilities_.cgroup2 / settings_.cgroup_name)) {
    std::error_code failed;
    if (fs::is_directory(box, failed)) ids.insert(box.filename());
  }
  for (const BoxRecord& record : known) ids.erase(record.id);
  Swept swept;
  for (const std::string& id : ids) {
    if (!is_id(id)) continue;
    const auto removed = remove(id);
    if (removed) {
      swept.destroyed.push_back(id);
      continue;
    }
    base::log::warn("unknown box stays", {{"box", id}, {"why", removed.error()}});
    swept.left.push_back({.id = id, .folder = folder_of(id), .cgroup = cgroup_of(id)});
  }
  remove_empty_cgroup();  // Of a server that died just before it did.
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
